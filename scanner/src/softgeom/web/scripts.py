"""JavaScript and CSS of pages and widgets, joined from their files.

The sources are ordinary ES modules that import each other by relative path, so that node and
browsers can run and test them as they are. A widget, and a page opened from a folder, take a single
module. The files share no top-level names, so one is made by writing them in order of dependence
and leaving out the words `import` and `export`: no bundler is needed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from softgeom import colours

FOLDER = Path(__file__).parent / "static"  # of the page that scans; others import from it
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(?P<file>[\w]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async function|function|class|const|let)", re.MULTILINE)


@cache
def module(name: str, folder: Path = FOLDER) -> str:
    """`folder/name.js` with all that it imports, from there or from `FOLDER`, as one script: of an
    explorer an ES module that exports `render({model, el})`, for anywidget.
    """
    return _join(f"{name}.js", folder)


def page_module(name: str, folder: Path = FOLDER) -> str:
    """The same with `PageModel`, the stand-in for a kernel, in scope."""
    return f"{_join('page.js', folder)}\n{module(name, folder)}"


@cache
def stylesheet() -> str:
    """The explorers' CSS, with the class colours of `softgeom.colours`."""
    light = " ".join(f"--sg-class-{i}: {colour};" for i, colour in enumerate(colours.COLOURS))
    # Black on a dark page is invisible: it becomes the only other neutral that stands apart from
    # the seven colours.
    dark = f"--sg-class-{colours.COLOURS.index(colours.BLACK)}: #C9D1D9;"
    rules = [
        f".softgeom {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ .softgeom {{ {dark} }} }}",
        f'[data-jp-theme-light="true"] .softgeom, [data-theme="light"] .softgeom {{ {light} }}',
        f'[data-jp-theme-light="false"] .softgeom, [data-theme="dark"] .softgeom {{ {dark} }}',
    ]
    return "\n".join(rules) + "\n" + text("explorer.css")


def _join(file: str, folder: Path) -> str:
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for match in _IMPORT.finditer(text(name, folder)):
            visit(match["file"])
        order.append(name)

    visit(file)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text(name, folder))) for name in order)


def text(name: str, folder: Path = FOLDER) -> str:
    """A file of `folder`, else of `FOLDER`, such as the elements or the rules of a page."""
    own = folder / name
    return (own if own.is_file() else FOLDER / name).read_text(encoding="utf-8")
