"""Settings of the site that `make docs` builds: Sphinx over the Markdown pages of this folder and the gallery."""

import logging
import os
import sys
import warnings
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_site"))  # markdown_page, which myst-nb imports by its name

project = "bayessel"
author = "the bayessel developers"
project_copyright = author
version = release = version_of("bayessel")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_site/templates"]
exclude_patterns = ["_site", "**/.ipynb_checkpoints", "gallery/**/*.ipynb", "gallery/**/*.py"]
default_role = "py:obj"  # `name` in a docstring links to the name if there is such a page

# Markdown pages -------------------------------------------------------------------------------------------------------
# The pages are plain Markdown, to be read on a code host. Their python blocks are executed here, each page in a process
# of its own, and what they print and draw stands below them; unchanged blocks come from the cache.
nb_custom_formats = {".md": ["markdown_page.notebook", {}, False]}
nb_execution_mode = os.environ.get("DOCS_EXECUTE", "cache")
nb_execution_cache_path = str(HERE.parent / ".cache" / "docs" / "pages")
nb_execution_timeout = 900  # seconds of a cell, on a machine that has other work too
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_output_stderr = "remove"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Gallery --------------------------------------------------------------------------------------------------------------
SECTIONS = ["regression", "widths", "small_models", "noise_and_classes", "evidence", "sampling", "judging"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/gallery/{name}" for name in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": "/plot_",
    "plot_gallery": os.environ.get("DOCS_EXECUTE", "cache") != "off",
    "abort_on_example_error": False,
    "parallel": int(os.environ.get("DOCS_JOBS", "1")),
    "doc_module": ("bayessel",),
    "backreferences_dir": "gallery/backreferences",
    "write_computation_times": False,  # seconds of a busy machine say nothing
    "min_reported_time": 1000,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib", "plain_pictures.reset"),
}
warnings.filterwarnings("ignore", message=".*non-interactive.*")

# Reference ------------------------------------------------------------------------------------------------------------
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autosummary_context = {"top_level": ["RBFDictionary", "width"]}  # have their page as bayessel.RBFDictionary, .width
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
suppress_warnings = ["autosummary.import_cycle"]  # the page of a module lists the names of that module

# Other projects -------------------------------------------------------------------------------------------------------
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "pymc": ("https://www.pymc.io/projects/docs/en/stable", None),
    "arviz": ("https://python.arviz.org/en/stable", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "xarray": ("https://docs.xarray.dev/en/stable", None),
}
intersphinx_timeout = 5


class WithoutInventories(logging.Filter):
    """Lists of other projects that cannot be fetched: links to them are then missing, which is no fault of a page."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be shown."""
        if record.levelno >= logging.WARNING and "inventor" in str(record.msg):
            record.levelno, record.levelname = logging.INFO, "INFO"
            return False
        return True


def setup(app: object) -> None:
    """Keep a build without the network free of warnings."""
    logging.getLogger("sphinx.sphinx.ext.intersphinx._load").addFilter(WithoutInventories())
    logging.getLogger("sphinx.sphinx.ext.intersphinx").addFilter(WithoutInventories())


# Looks ----------------------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "bayessel"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "bayessel"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
}
html_sidebars = {"index": []}
