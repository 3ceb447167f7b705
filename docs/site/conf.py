"""Sphinx settings of the site. Its sources are the repository's own pages, where they stand:
README.md and docs/. Nothing is executed here.
"""

import re
import shutil
from importlib.metadata import version as _version
from pathlib import Path

from sphinx.pycode import ModuleAnalyzer

from compendium import paths
from compendium.pages import notebook_pages
from compendium.runs import committed

HERE = Path(__file__).parent
ROOT = paths.root()
SITE = HERE.relative_to(ROOT).as_posix()

project = "Softmax Geometry"
author = copyright = "The Softmax Geometry authors"
release = version = _version("softgeom")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["README.md", "docs/**.md", "scanner/docs/**.md", "data/README.md"]
include_patterns += [".github/CONTRIBUTING.md"]
include_patterns += ["notebooks/lessons/*.md", f"{SITE}/api.md"]
# Folders that Sphinx need not walk through
_SOURCES = {pattern.partition("/")[0] for pattern in include_patterns}
exclude_patterns = [path.name for path in ROOT.iterdir() if path.name not in _SOURCES]
exclude_patterns += ["docs/templates", "data/[!R]*", f"{SITE}/contents.md"]
exclude_patterns += ["scanner/docs/pypi.md"]  # the page of the package index
html_theme = "sphinx_book_theme"
html_title = project
html_favicon = "_static/favicon.svg"
templates_path = ["_templates"]
_SIDEBAR = ("navbar-logo", "search-button-field", "alone", "sbt-sidebar-nav")
html_sidebars = {"**": [f"{name}.html" for name in _SIDEBAR]}
html_extra_path = [str(ROOT / "build" / "pages")]  # explorers, lessons, story, scan page
html_context = {"default_mode": "auto"}  # the theme warns without it
html_copy_source = html_show_sourcelink = html_domain_indices = False
html_show_search_summary = False  # it fetches pages, which a browser forbids without a server
html_theme_options = {"use_download_button": False, "home_page_in_toc": False}
html_theme_options["navbar_persistent"] = []  # else a second search field

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
# README and lessons link to files that are no pages; a notebook may skip a level of headings
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure"]


# A small picture that leads somewhere, as code hosts need it written
_THUMBNAIL = re.compile(r'<a href="([^"]+)"><img src="([^"]+)" width="(\d+%?)" alt="([^"]*)"></a>')


def _read(app, name, source):
    """The front page gets the table of contents, a notebook's page its code."""
    folder, _, page = name.rpartition("/")
    if name == root_doc:
        source[0] += (HERE / "contents.md").read_text(encoding="utf-8")
    elif folder == notebook_pages.FOLDER and page != "README":
        source[0] = notebook_pages.page(committed(page), code=True)
    else:
        source[0] = _THUMBNAIL.sub(r"[![\4](\2){width=\3}](\1)", source[0])


def _plain(app, what, name, obj, options, lines):
    """Docstrings are plain text: one backtick marks code, and stars and bars mean themselves.
    Of the package's own, the first paragraph says enough.
    """
    if what == "module":
        del lines[lines.index("") :]
    for place, line in enumerate(lines):
        pieces = re.split(r"(`+[^`]+`+)", line)
        pieces[0::2] = [re.sub(r"([*|])", r"\\\1", text) for text in pieces[0::2]]
        lines[place] = "".join(re.sub(r"^`(?!`)(.*)`$", r"``\1``", part) for part in pieces)


def _signatures(app):
    """Of a function with overloads show the signature that names every option."""
    for name in ("scanning", "answering"):
        analyzer = ModuleAnalyzer.for_module(f"softgeom.{name}")
        analyzer.analyze()
        analyzer.overloads.clear()


def _menu(app, page, template, context, doctree):
    """Pages that stand alone are in no table of contents: the menu and the front page's "Next" get
    the lessons here.
    """
    names = sorted(path.stem for path in (ROOT / "notebooks" / "lessons").glob("*.ipynb"))
    titles = [name[2:].replace("_", " ").capitalize() for name in names]
    addresses = [f"lessons/{name}.html" for name in names]
    context["lessons"] = list(zip(addresses, titles, strict=True))
    if page == root_doc:
        context["next"] = {"link": addresses[0], "title": f"Lesson 1: {titles[0]}"}


def _index(app, error):
    if not error:
        shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def setup(app):
    app.connect("builder-inited", _signatures)
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _plain, priority=100)  # before napoleon adds markup
    app.connect("html-page-context", _menu, priority=100)  # before the theme reads it
    app.connect("build-finished", _index)
