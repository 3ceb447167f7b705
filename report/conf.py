"""Sphinx settings of the report. The pages are assembled by `compendium.pages.report`; nothing is executed here."""

import functools
import json
import os
import re
import shutil
import subprocess
from importlib.metadata import version as _version

from docutils.nodes import SkipNode

from compendium.pages import api_pages

project = "Softmax Geometry"
author = "The Softmax Geometry authors"
copyright = author
release = version = _version("softgeom")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static"]
templates_path = ["_templates"]
html_favicon = "_static/favicon.svg"
html_extra_path = ["_extra"]
html_css_files = ["styles/site.css"]  # put together after the build, by compendium.pages.report
html_js_files = ["report.js"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = (
    False  # it would fetch each page found, which a browser forbids to pages opened from a folder
)
html_use_index = False  # the search knows every name
html_domain_indices = False
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
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
myst_enable_extensions = ["dollarmath", "amsmath", "html_image", "colon_fence"]
myst_heading_anchors = 3
myst_update_mathjax = False

add_module_names = False  # each section names its module
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
autodoc_default_options = {"members": True, "undoc-members": False}
# Optional at run time, slow to import, not documented here
autodoc_mock_imports = ["distributed", "datasets", *api_pages.absent()]
maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes once, as the class lists them
suppress_warnings = [
    "ref.python",  # one name may be documented where it is defined and where it is exported
    "mystnb.unknown_mime_type",  # a widget's state beside its text
    "myst.header",  # a notebook may open a section below the level of the one before
    "myst.xref_missing",  # README and lessons also link to files that are not part of the site
    "misc.highlighting_failure",
]

# Formulas become MathML here, which browsers draw without a script, where npm brought MathJax and
# node is there; else pages fetch MathJax, from a network.
_HERE = os.path.dirname(os.path.abspath(__file__))
_MATHJAX = os.path.join(os.path.dirname(_HERE), "npm", "node_modules", "mathjax")
_TYPESET = bool(shutil.which("node")) and os.path.isdir(_MATHJAX)
if _TYPESET:
    html_math_renderer = "mathml"


@functools.cache
def _node(process):
    """The node that typesets for a process; Sphinx writes pages in several."""
    command = ["node", os.path.join(_HERE, "formulas.cjs"), _MATHJAX]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, encoding="utf-8", **pipes)


@functools.cache
def _mathml(tex, display):
    node = _node(os.getpid())
    print(json.dumps([tex, display]), file=node.stdin, flush=True)
    return json.loads(node.stdout.readline())


def _inline_formula(writer, node):
    writer.body.append(f'<span class="math">{_mathml(node.astext(), False)}</span>')
    raise SkipNode


def _formula_apart(writer, node):
    writer.body.append(f'<div class="math">{_mathml(node.astext(), True)}</div>\n')
    raise SkipNode


def _plain_docstring(app, what, name, obj, options, lines):
    """Our docstrings are plain text with code in backticks: reST would read `x` as a reference, |x|
    as a substitution, and run an
    indented formula or example together as a quotation."""
    if what == "module":
        _mark_displays(lines)
    for position, line in enumerate(lines):
        if what == "module" and line.startswith("    "):
            continue  # a display, literal already
        line = re.sub(r"(:\w+:`[^`]+`|``[^`]+``)|`([^`]+)`", lambda m: m[1] or f"``{m[2]}``", line)
        # literal text keeps its bars and stars, and a bullet its star
        pieces = re.split(r"(``[^`]*``)", line)
        lines[position] = "".join(
            p if p.startswith("``") else re.sub(r"(?<!\\)(\||(?<!^)\*|^\*(?! ))", r"\\\1", p)
            for p in pieces
        )


def _mark_displays(lines):
    """Announce every indented block after an empty line as literal text."""
    for position in range(len(lines) - 1, 1, -1):
        before = [line for line in lines[:position] if line.strip()]
        opens = (
            lines[position].startswith("    ")
            and not lines[position - 1].strip()
            and not before[-1].startswith(" ")
        )
        if opens and not before[-1].endswith("::"):
            lines[position:position] = ["::", ""]


def _short_signature(app, what, name, obj, options, signature, result):
    """NumPy's arrays under the names that the source uses."""

    array = r"~?(?:numpy\.)?ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?(?:numpy\.)?dtype\[~?(?:[a-z]+\.)?(\w+)\]\]"

    def short(text):
        return text and re.sub(array, r"NDArray[\1]", text).replace("<factory>", "...")

    return short(signature), short(result)


def _skip_noise(app, what, name, obj, skip, options):
    """Traits and fields of named tuples are explained where their class is; here each would get a sentence about its type."""
    from traitlets import TraitType

    noise = isinstance(obj, TraitType) or (getattr(obj, "__doc__", None) or "").startswith(
        "Alias for field number"
    )
    return True if noise else None


def _readable_aloud(app, page, template, context, doctree):
    """Two things that a screen reader stumbles over. Sphinx writes a signature of several lines as
    a list of definitions that defines nothing: it becomes
    lines. MyST-NB names every button that unfolds a cell alike, over the words on it: they stay."""

    def lines(found):
        return found[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")

    body = context.get("body", "").replace(
        '<summary aria-label="Toggle hidden content">', "<summary>"
    )
    context["body"] = re.sub(
        r'<dl>\n(<dd><em class="sig-param.*?)</dl>', lines, body, flags=re.DOTALL
    )


def _lighter(app, page, template, context, doctree):
    """A third of the register's bytes are marks around each word of code, for which no style asks;
    pictures below the window are fetched when they come near."""
    body = context.get("body", "")
    body = re.sub(r'<span class="pre">(.*?)</span>', r"\1", body)
    body = body.replace(' class="docutils literal notranslate"', ' class="literal"')
    context["body"] = body.replace("<img ", '<img loading="lazy" ')


def _only_what_it_uses(app, page, template, context, doctree):
    """A page loads no style for notebooks unless it is one, the search's scripts if it is the
    search, and as one file the styles that stand in it."""
    unused = ["/pygments.css", "/sphinx-book-theme.css"]
    if not page.startswith("notebooks/"):
        unused.append("mystnb.")
    if page != "search":
        unused += ["doctools.js", "sphinx_highlight.js"]
    for kind in ("css_files", "script_files"):
        files = context[kind]
        files[:] = [
            each for each in files if not any(name in f"/{each.filename}" for name in unused)
        ]


def setup(app):
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_formula_apart, None))
    app.connect("html-page-context", _only_what_it_uses, priority=900)  # when all have added theirs
    app.connect("html-page-context", _readable_aloud)
    app.connect("html-page-context", _lighter)
    app.connect("autodoc-skip-member", _skip_noise)
    app.connect(
        "autodoc-process-docstring", _plain_docstring, priority=100
    )  # before napoleon, which adds markup of its own
    app.connect("autodoc-process-signature", _short_signature)
