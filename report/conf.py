"""Sphinx settings of the report. The pages are assembled by `softgeom.compendium.report`; nothing is executed here."""

import os
from importlib.metadata import version as _version

project = "Softmax Geometry"
author = "The Softmax Geometry authors"
copyright = author
release = version = _version("softgeom")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["report.css"]
html_js_files = ["report.js"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "search_bar_text": "Search the compendium",
    "navbar_persistent": [],  # the search field of the side bar is enough; the theme would show two
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

nb_execution_mode = "off"
nb_merge_streams = True  # else each refresh of a progress line becomes a box of its own
myst_enable_extensions = ["dollarmath", "amsmath", "html_image", "colon_fence"]
myst_heading_anchors = 3
myst_update_mathjax = False

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "undoc-members": False}
autodoc_mock_imports = ["distributed", "datasets"]  # optional at run time, slow to import, not documented here
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes once, as the class lists them
suppress_warnings = ["docutils", 
    "ref.python",
    "mystnb.unknown_mime_type",
    "myst.header",
    "myst.xref_missing",
    "misc.highlighting_failure",
]

# MathJax 3 lies in _static when the build could get it from npm; else formulas are typeset only with a network.
if os.path.exists(os.path.join(os.path.dirname(__file__), "_static", "tex-svg.js")):
    mathjax_path = "tex-svg.js"
mathjax3_config = {"svg": {"fontCache": "local"}, "options": {"enableMenu": False}}


def _plain_docstring(app, what, name, obj, options, lines):
    """Our docstrings are plain text with code in single backticks; reST would read `x` as a reference and |x| as a substitution."""
    import re

    for position, line in enumerate(lines):
        line = re.sub(r"(?<![`:])`([^`]+)`(?!`)", r"``\1``", line)
        pieces = re.split(r"(``[^`]*``)", line)  # literal text keeps its bars and stars
        lines[position] = "".join(p if p.startswith("``") else re.sub(r"(?<!\\)([|*])", r"\\\1", p) for p in pieces)


def setup(app):
    app.connect(
        "autodoc-process-docstring", _plain_docstring, priority=100
    )  # before napoleon, which adds markup of its own
