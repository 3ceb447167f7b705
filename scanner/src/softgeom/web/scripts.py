"""The explorers' JavaScript and CSS, joined from the files of `static/`.

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

FOLDER = Path(__file__).parent / "static"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(?P<file>[\w]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async function|function|class|const|let)", re.MULTILINE)


@cache
def module(name: str) -> str:
    """`static/name.js` with all that it imports as one script: of an explorer an ES module that
    exports `render({model, el})`, for anywidget.
    """
    return _join(f"{name}.js")


def page_module(name: str) -> str:
    """The same with `PageModel`, the stand-in for a kernel, in scope."""
    return f"{_join('page.js')}\n{module(name)}"


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


def _join(file: str) -> str:
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for match in _IMPORT.finditer(text(name)):
            visit(match["file"])
        order.append(name)

    visit(file)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text(name))) for name in order)


def text(name: str) -> str:
    """A file of `static/` as it is, such as the elements or the rules of a page."""
    return (FOLDER / name).read_text(encoding="utf-8")
