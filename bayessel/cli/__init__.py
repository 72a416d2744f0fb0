"""The command line: ``bayessel widths`` compares kernel widths, ``fit`` fits one model, ``delve`` compares methods.

Exit codes: 0 done, 2 the input cannot be used (one line says why), 130 interrupted (what was finished is written).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bayessel.cli import _delve, _fit, _widths


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = _parser().parse_args(_attached(sys.argv[1:] if argv is None else argv))
    try:
        return int(arguments.run(arguments))
    except (ValueError, TypeError, OSError, ImportError) as error:
        if arguments.debug:
            raise
        _say_error(f"bayessel: {' '.join(str(error).split())}")
        return 2
    except KeyboardInterrupt:
        _say_error("bayessel: interrupted before anything was finished; nothing was written")
        return 130


def _attached(words: Sequence[str]) -> list[str]:
    """Write ``--widths -1,1`` as ``--widths=-1,1``: argparse would take the number for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--widths" and word[:1] == "-" and word[1:2] in tuple("0123456789."):
            joined[-1] = f"--widths={word}"
        else:
            joined.append(word)
    return joined


def _parser() -> argparse.ArgumentParser:
    from bayessel import __version__

    parser = argparse.ArgumentParser(
        prog="bayessel",
        description="Bayesian model selection: which kernel width do the data prefer?",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"bayessel {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for one in (_widths.add(commands), _fit.add(commands), *_delve.add(commands)):
        one.add_argument("--quiet", action="store_true", help="no progress bar, and no table on the terminal")
        one.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
    return parser


def _say_error(text: str) -> None:
    sys.stderr.write(text + "\n")
