"""What pyproject.toml cannot say: the description of a release is the README, its links made absolute."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def absolute(readme: str, source: str) -> str:
    """The README with links to files of the project as addresses under `source`."""
    return re.sub(r"\]\((?!https?://|#)([^)\s]+)\)", rf"]({source}/\1)", readme)


if __name__ == "__main__":
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    text = absolute((ROOT / "README.md").read_text(encoding="utf-8"), urls["Source"])
    setup(long_description=text, long_description_content_type="text/markdown")
