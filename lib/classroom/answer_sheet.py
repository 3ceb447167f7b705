"""The answer sheet: what a learner wrote in this kernel and what was replied, as a page to hand in.

    classroom.export("answers.html", name="Ada", explanation="Two distant tokens ...")

The sheet is kept in the kernel's memory: a new kernel starts an empty one. Whatever was written is
text on the page and never markup.
"""

import html
from pathlib import Path
from typing import Any

from classroom.lesson import Feedback
from classroom.reading import written
from softgeom.web.document import document

LONGEST = 400  # characters of one answer that the page shows

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 1.5rem auto; padding: 0 1rem; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 0.3rem; }
li { margin: 0.4rem 0; }
code { overflow-wrap: anywhere; }
.explanation { white-space: pre-wrap; overflow-wrap: anywhere; }
"""

_attempts: dict[str, list[tuple[str, Feedback]]] = {}


def note(name: str, answer: Any, feedback: Feedback) -> None:
    """Enter an attempt at the exercise or prediction `name`."""
    _attempts.setdefault(name, []).append((written(answer, LONGEST), feedback))


def page(name: str = "", explanation: str = "") -> str:
    """The sheet as one HTML text: the questions in the order first tried, with every attempt."""
    solved = sum(any(feedback.right for _, feedback in tries) for tries in _attempts.values())
    questions = [_question(asked, tries) for asked, tries in _attempts.items()]
    if explanation.strip():
        questions.append(
            f"<h2>Explained to a neighbour</h2>\n<p "
            f'class="explanation">{html.escape(explanation.strip())}</p>'
        )
    title = f"Answers of {name.strip()}" if name.strip() else "Answers"
    summary = (
        f"{len(_attempts)} questions tried, {solved} exercises solved. "
        "Predictions are answered and not judged; the first guess is the prediction."
    )
    lines = ["<main>", f"<h1>{html.escape(title)}</h1>", f"<p>{summary}</p>", *questions, "</main>"]
    return document(title, _STYLE, "\n".join(lines), scripts=False)


def export(path: str | Path, name: str = "", explanation: Any = "") -> Feedback:
    """Write the sheet of a learner to a file whose name ends in .html (one that is there is
    replaced), for the teacher, with what is said to the lesson's last question; while that is `...`
    nothing is written. Whatever goes wrong, the result is a sentence and no error.
    """
    if explanation is ...:
        return Feedback(
            "Replace the `...` by what you told your neighbour, in quotes, and run the cell again.",
            heading="To hand in.",
        )
    if problem := _problem(path, str(name), str(explanation)):
        return Feedback(problem, heading="I cannot write that.")
    return Feedback(
        f"Your answers are in `{path}`: open it, read it through, and hand it in.",
        heading="Written.",
    )


def _problem(path: Any, name: str, explanation: str) -> str | None:
    """Write the sheet, or say in a sentence why it cannot be written."""
    if not _attempts and not explanation.strip():
        return "Nothing was answered yet, so there is nothing to hand in."
    if not isinstance(path, (str, Path)) or Path(path).suffix.lower() != ".html":
        return "Give the page a file name that ends in .html, such as 'answers.html', in quotes."
    try:
        Path(path).write_text(page(name, explanation), encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a name that a file can have"
        return f"The file {str(path)!r:.80} cannot be written: {reason}."
    return None


def _question(asked: str, tries: list[tuple[str, Feedback]]) -> str:
    lines = [
        f"<li><code>{html.escape(text)}</code><br>{html.escape(repr(feedback))}</li>"
        for text, feedback in tries
    ]
    return f"<h2>{html.escape(asked)}</h2>\n<ol>\n" + "\n".join(lines) + "\n</ol>"
