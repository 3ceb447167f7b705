"""A lesson as one HTML file that needs no kernel: what the notebook in `notebooks/lessons` says,
with its figures live and its questions answered by the page (`static/lesson.js`).

`python -m classroom.pages FOLDER` writes all of them. The notebook's cells run here once, with
a `classroom` that notes what they ask and show. Cells tagged `kernel`, which speak of running cells, are left
out, and so is what asks the kernel about a figure.
"""

import ast
import contextlib
import html
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

import classroom
from classroom import tables
from papers.explorers import scripts
from papers.explorers.examples import initial_state
from papers.explorers.explorer import Explorer
from softgeom.web.document import FIGURE, document

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks" / "lessons"
# of each explorer, what its module offers to the judges beside the figure
_TOOLS = {
    "softmax": "makeLayer, verdicts, countRankings",
    "hardmax": "trajectory, firstLeads",
    "attention": "evaluator",
    "fold": "",
}
_EXPORTED = "export default { render };"
_NOSCRIPT = """<noscript><p>This page answers in JavaScript; the sheet on paper
(<code>PAPER.md</code>) does without.</p></noscript>"""
_HAND_IN = """<section class="hand-in">
<label>Your explanation <textarea name="explanation"></textarea></label>
<label>Your name <input type="text" name="name" autocomplete="name"></label>
<p><button type="button" data-save>Save my answers as a file</button>
<button type="button" data-forget class="quiet">Forget them here</button></p>
<p>The file is for your teacher, and can be read and printed. Until you save it, what you answered
is kept in this browser and nowhere else.</p>
</section>"""


def names() -> list[str]:
    """The lessons' notebooks, in the order of `classroom.LESSONS`."""
    return sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def title(name: str) -> str:
    """The heading of a lesson's notebook."""
    return "".join(_cells(name)[0]["source"]).splitlines()[0].removeprefix("# ")


def page(name: str) -> str:
    """The lesson `notebooks/lessons/{name}.ipynb` as one HTML text; it needs no network."""
    number = names().index(name)
    key = list(classroom.LESSONS)[number]
    shown = _Rendering()
    for cell in _cells(name):
        shown.add(cell)
    lesson = for_page(tables.lesson(key))
    lesson |= {"key": key, "number": number + 1, "title": title(name), "figures": shown.figures}
    kinds = dict.fromkeys(figure["kind"] for figure in shown.figures)
    said = f"{_NOSCRIPT}\n{''.join(shown.parts)}"
    body = f'<main class="softgeom lesson">\n{said}</main>\n{_script(lesson, kinds)}'
    style = scripts.stylesheet() + FIGURE + scripts.text("lesson.css")
    return document(title(name), style, body)


def for_page(known: dict[str, Any]) -> dict[str, Any]:
    """What `tables.lesson` made, its sentences as HTML."""
    questions = {
        name: asked | {"hints": [inline(hint) for hint in asked["hints"]]}
        for name, asked in known["questions"].items()
    }
    texts = [(right, inline(text)) for right, text in known["texts"]]
    words = {name: inline(text) for name, text in known["words"].items()}
    return known | {"questions": questions, "texts": texts, "words": words}


def _cells(name: str) -> list[dict[str, Any]]:
    path = NOTEBOOKS / f"{name}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def _script(lesson: dict[str, Any], kinds: dict[str, None]) -> str:
    modules = []
    for kind in kinds:
        tools = f"return {{ render, {_TOOLS[kind]} }};"
        modules.append(
            f"{kind}: (() => {{\n{scripts.module(kind).replace(_EXPORTED, tools)}\n}})(),"
        )
    data = json.dumps(lesson, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return (
        f'<script type="module">\n{scripts.module("lesson")}\nconst tools = {{\n'
        + "\n".join(modules)
        + "\n};\ntools.all = Object.assign({}, ...Object.values(tools));\n"
        + f"teach({data}, tools);\n</script>"
    )


class _Rendering:
    """Runs a lesson's cells one after another and keeps what a reader sees of them."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.figures: list[dict[str, Any]] = []
        self._shown: dict[Explorer, tuple[str, dict[str, Any]]] = {}
        self._names: dict[str, Any] = {}
        self._markdown = _markdown()

    def add(self, cell: dict[str, Any]) -> None:
        tags, source = cell["metadata"].get("tags", []), "".join(cell["source"])
        if "kernel" in tags:
            return
        if cell["cell_type"] == "markdown":
            self.parts.append(self._markdown.render(source))
            return
        printed, value = self._run(source)
        if "solution" in tags:
            self._solve(source)
        elif printed or not (value is None or isinstance(value, Explorer)):
            self._print(printed, value)
        for explorer, (until, state) in list(self._shown.items()):
            if _state(explorer) != state:  # set anew for what follows
                self.hide(explorer, until)

    def _run(self, source: str) -> tuple[str, Any]:
        tree, value = ast.parse(source), None
        last = tree.body[-1]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if isinstance(last, ast.Expr):
                tree.body.pop()
            exec(compile(tree, "lesson", "exec"), self._names)
            self._names["classroom"] = self
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "lesson", "eval"), self._names)
        return printed.getvalue(), value

    def _print(self, printed: str, value: Any) -> None:
        shown = "" if value is None else getattr(value, "to_string", value.__str__)()
        self.parts.append(f"<pre>{html.escape(printed + shown)}</pre>\n")

    def _solve(self, source: str) -> None:
        name = re.findall(r"solution_\d+", source)[0]
        code = source.partition("\n")[2]
        shown = html.escape(f"{code}\n\n{name}: {self._names[name]}")
        summary = "Solution: open me when you have tried"
        self.parts.append(f"<details><summary>{summary}</summary><pre>{shown}</pre></details>\n")

    # what the cells know as `classroom`

    def check(self, name: str, answer: Any) -> None:
        self.parts.append(f'<section class="ask" data-question="{name}"></section>\n')

    reveal = check

    def hide(self, explorer: Explorer, until: str) -> Explorer:
        state = _state(explorer)
        self._shown[explorer] = until, state
        self.parts.append(f'<div data-figure="{len(self.figures)}" data-until="{until}"></div>\n')
        kind = type(explorer).__name__.removesuffix("Explorer").lower()
        hidden = {"hidden": True, "presets": []}
        self.figures.append({"kind": kind, "state": initial_state(kind) | state | hidden})
        return explorer

    def after(self, name: str, show: Callable[[], Any]) -> None:
        read = show.__code__.co_names
        if any(isinstance(self._names.get(each), Explorer) for each in read):
            return  # the figure says it itself
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = show()
        self.parts.append(f'<div class="after" data-until="{name}">')
        self._print(printed.getvalue(), value)
        self.parts.append("</div>\n")

    def export(self, *_: Any, **__: Any) -> None:
        self.parts.append(_HAND_IN)


def _state(explorer: Explorer) -> dict[str, Any]:
    kind = type(explorer).__name__.removesuffix("Explorer").lower()
    held = explorer.get_state()
    return {name: held[name] for name in initial_state(kind) if name not in ("hidden", "presets")}


def _markdown() -> MarkdownIt:
    def formula(content: str, options: dict[str, Any]) -> str:
        return _formula(content)

    return MarkdownIt("commonmark").use(dollarmath_plugin, renderer=formula)


def inline(text: str) -> str:
    """One sentence as HTML; places to fill stay."""
    return _markdown().renderInline(re.sub(r"\$[^$]*\$", _single_braces, text))


def _single_braces(found: re.Match[str]) -> str:
    return found[0].replace("{{", "{").replace("}}", "}") if "{{" in found[0] else found[0]


_SIGNS = {
    "alpha": "<i>α</i>", "mu": "<i>μ</i>", "le": " ≤ ", "ge": " ≥ ", "cdot": " · ", "sum": "∑",
    "pm": "±", "langle": "⟨", "rangle": "⟩", "propto": " ∝ ", "mapsto": " ↦ ", "log": "log ",
    "det": "det ", "sqrt": "√", ",": " ", "|": "‖",
}  # fmt: skip
# an upright name, a place to fill, a command, a letter, a sign that HTML writes otherwise
_PARTS = re.compile(r"\\mathrm\{(\w+)\}|(\{n,?\})|\\([a-zA-Z]+|.)|([A-Za-z])|([-'<>&])", re.DOTALL)
_FRACTION = re.compile(r"\\frac\{([^{}]*)\}\{([^{}]*)\}")


def _formula(tex: str) -> str:
    """The few words of TeX that lessons use, in HTML; no braces stand in those of a fraction."""

    def part(found: re.Match[str]) -> str:
        name, place, command, letter, sign = found.groups()
        if command:
            return found[0] if command == "frac" else _SIGNS[command]
        if letter:
            return f"<i>{letter}</i>"
        return name or place or {"-": "−", "'": "′"}.get(sign, html.escape(sign))

    made = _FRACTION.sub(lambda f: f"{_grouped(f[1])} / {_grouped(f[2])}", _PARTS.sub(part, tex))
    for mark, kind in (("_", "sub"), (r"\^", "sup")):
        script = rf"{mark}(?:\{{ *((?:[^{{}}]|\{{n,?\}})*?) *\}}|(<i>.</i>|.))"
        made = re.sub(script, rf"<{kind}>\1\2</{kind}>", made)
    made = re.sub(r"\{(?!n,?\})|(?<!\{n)(?<!\{n,)\}", "", made)  # what is left groups nothing
    return f'<span class="formula">{" ".join(made.split())}</span>'


def _grouped(part: str) -> str:
    return f"({part.strip()})" if " " in part.strip() else part.strip()


def main(folder: Path) -> None:
    """Write every lesson's page into a folder and print their titles as JSON, by notebook."""
    for name in names():
        (folder / f"{name}.html").write_text(page(name), encoding="utf-8")
    print(json.dumps({name: title(name) for name in names()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
