"""The explorable article "One softmax, four places": one HTML file that needs no kernel, no network
and no other file.

Each step asks before it tells: a number or a word is guessed, then the answer, its figure and the
verdict of the claim behind it appear. All numbers are taken from the records when the page is
built; the live figures are the explorers' own pages, set into it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compendium.book import load_table
from compendium.findings import Finding
from softgeom import explorers
from softgeom.explorers.document import document
from softgeom.margins import scalar

TITLE = "One softmax, four places"


@dataclass(frozen=True)
class Step:
    """One question of the article.

    Attributes
    ----------
    ask : str
        The question.
    answer : str
        The right answer, a number or one of `options`.
    tells : str
        What is shown after a guess.
    options : tuple of str
        Words to choose from; none asks for a number.
    near : float
        Share by which a number may be off and still count as seen.
    explorer : str
        Name of the live figure that appears with the answer, or "".
    state : mapping
        In which state it starts.
    claim : str
        Id of the claim whose verdict stands beside it, or "".
    """

    ask: str
    answer: str
    tells: str
    options: tuple[str, ...] = ()
    near: float = 0.1
    explorer: str = ""
    state: Mapping[str, Any] | None = None
    claim: str = ""


def sections(found: Iterable[Finding], profile: str) -> dict[str, tuple[str, Sequence[Step]]]:
    """Heading of each place, its introduction, and its steps, with the numbers of the records."""
    evidence = {f.claim.id: f.judgement.evidence for f in found}
    gpt2 = (
        load_table("10_braid_counts", "model_sizes", profile)
        .set_index("model")
        .loc["GPT-2"]
        .to_dict()
    )
    few, all_orders = (
        int(gpt2[f"log10_{name}"]) + 1 for name in ("regions_with_bias", "factorial")
    )
    dead, fold, decide, count = (
        evidence[id]
        for id in (
            "001-section-4-ppocr",
            "003-corollary-3.1",
            "004-leaders-explain",
            "004-followers-decide",
        )
    )
    pair = np.array([-1.0, 1.0])
    off = evidence["002-ov-circuit"]["error"]
    return {
        "At the exit": (
            (
                "A model's last layer scores each answer by a dot product with a row of weights; "
                "the softmax keeps the order of the scores."
            ),
            (
                Step(
                    (
                        "Three rows form a triangle, the fourth lies inside it. Can the fourth "
                        "class ever score highest?"
                    ),
                    "no",
                    (
                        "Whichever way the features point, a corner of the triangle lies farther "
                        "that way. Drag the fourth class out, and it can win."
                    ),
                    ("yes", "no"),
                    explorer="softmax",
                    claim="001-figure-1",
                ),
                Step(
                    f"All orders of GPT-2's {int(gpt2['classes']):,} tokens are a number of "
                    f"{all_orders:,} digits. The orders that its {int(gpt2['dimension'])} "
                    "features "
                    "can produce are a number of how many digits?",
                    str(few),
                    (
                        f"{few:,} digits. Each feature multiplies the count by some millions, "
                        "and there are few features beside so many tokens."
                    ),
                    claim="001-table-3",
                ),
                Step(
                    (
                        "A text recogniser that one command installs chooses between "
                        f"{dead['asked']:,} outputs. How many can never be its answer, whatever "
                        "the picture?"
                    ),
                    str(dead["imprisoned"]),
                    (
                        f"{dead['imprisoned']:,}, each with a proof that is checked without a "
                        f"solver. {dead['copies']} of these rows are copies of one another."
                    ),
                    near=0.2,
                    claim="001-never-read",
                ),
            ),
        ),
        "Between": (
            (
                "Heads, norms and feed-forward layers write into one stream. The notes say that "
                "a model is the sum of what they write."
            ),
            (
                Step(
                    (
                        "Take two trained models apart and add the parts up again, in double "
                        "precision. How far off is the sum: a thousandth, a millionth, or "
                        "nothing but rounding?"
                    ),
                    "rounding",
                    (
                        f"Relative errors of at most {off:.0e}: nothing but rounding. Two "
                        "formulas of the notes fail as printed, both for a lost transpose."
                    ),
                    ("thousandth", "millionth", "rounding"),
                    claim="002-ov-circuit",
                ),
            ),
        ),
        "Inside attention": (
            (
                "A token subtracts the mean of its past, weighted by a softmax. On a line, with "
                "past tokens at −1 and 1, the coupling c grows from 0."
            ),
            (
                Step(
                    (
                        "From which c on does the line fold, so that one residual belongs to "
                        "several tokens?"
                    ),
                    f"{1 / scalar.attention_moments(0.0, pair, 1.0).variance:g}",
                    (
                        "At c = 1 the slope 1 − c Var reaches zero in the middle, where both "
                        "tokens weigh the same. Turn c up and see the curve fold."
                    ),
                    explorer="fold",
                    state={"past": pair.tolist(), "coupling": 0.5},
                    claim="003-proposition-1",
                ),
                Step(
                    (
                        "At c = 2 the printed formula gives the next token a density. To what "
                        "does it integrate: less than one, one, or more?"
                    ),
                    "more",
                    (
                        f"To {fold['mass']:.2f}: where the line is folded, several tokens share "
                        "a residual, and the formula counts each of them."
                    ),
                    ("less", "one", "more"),
                    claim="003-corollary-3.1",
                ),
            ),
        ),
        "In the cold limit": (
            (
                "Let the softmax grow ever colder: each token looks at one other only, the "
                "farthest in its own direction, and steps towards it."
            ),
            (
                Step(
                    (
                        "A classifier reads reviews this way; words gather at a few leaders. "
                        "Delete all leaders from the reviews: what percentage of its decisions "
                        "stays?"
                    ),
                    f"{100 * decide['kept']:.0f}",
                    (
                        f"{decide['kept']:.0%}. How many words gather on each side decides: that "
                        f"count alone gives {count['predicts']:.0%} of the decisions."
                    ),
                    near=0.05,
                    explorer="hardmax",
                    claim="004-leaders-explain",
                ),
            ),
        ),
    }


def page(found: Sequence[Finding], profile: str) -> str:
    """The article as one HTML text."""
    verdicts = {f.claim.id: f.verdict for f in found}
    parts = []
    for heading, (introduction, steps) in sections(found, profile).items():
        parts.append(f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(introduction)}</p>")
        parts += [
            _step(f"q{len(parts)}-{n}", step, verdicts.get(step.claim, ""))
            for n, step in enumerate(steps)
        ]
    return _page("\n".join(parts))


def unavailable(missing: str) -> str:
    """What stands in the article's place where a result that it needs is missing."""
    return _page(
        "<p>This page takes its numbers from the results of all notebooks; one is missing: "
        f"{html.escape(missing)}.</p>"
    )


def _page(content: str) -> str:
    return document(
        TITLE, _STYLE, _BODY.replace("@TITLE", TITLE).replace("@BODY", content), frames=True
    )


def _step(name: str, step: Step, verdict: str) -> str:
    if step.options:
        field = "".join(
            (
                f'<label><input type="radio" name="{name}" value="{html.escape(option)}"> '
                f"{html.escape(option)}</label> "
            )
            for option in step.options
        )
    else:
        field = (
            f'<label>Your guess <input type="number" step="any" name="{name}" '
            'inputmode="decimal"></label> '
        )
    live = ""
    if step.explorer:
        inside = html.escape(explorers.page(step.explorer, step.state), quote=True)
        live = f'<iframe title="{step.explorer} explorer" data-page="{inside}"></iframe>'
    stamp = (
        f'<p class="verdict">{html.escape(step.claim)}: <b>{html.escape(verdict)}</b></p>'
        if verdict
        else ""
    )
    return (
        f'<form class="step" data-answer="{html.escape(step.answer)}" '
        f'data-near="{step.near}">\n<p class="ask">{html.escape(step.ask)}</p>\n'
        f'<p>{field}<button type="submit">Guess</button></p>\n<p class="said" '
        'aria-live="polite"></p>\n'
        f'<div class="tells" hidden><p>{html.escape(step.tells)}</p>{stamp}{live}</div>\n</form>'
    )


_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #57606a; --line: #d0d7de; --blue: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #14181d; --soft: #9da7b1; --line: #39424d; --blue: #56b4e9; } }
body { font: 17px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0; }
main { max-width: 44rem; margin: 0 auto; padding: 1rem; }
h1 { line-height: 1.15; } h2 { margin-top: 2.2rem; }
.step { border: 1px solid var(--line); border-radius: 10px; padding: 0.4rem 1rem; margin: 1rem 0; }
.ask { font-weight: 600; }
label { margin-right: 0.8rem; white-space: nowrap; }
input[type="number"] { font: inherit; width: 8em; padding: 0.3em; color: inherit; background: transparent; border: 1px solid var(--soft); border-radius: 6px; }
button { font: inherit; padding: 0.35em 1em; border: 1px solid var(--soft); border-radius: 7px; color: var(--ink); background: transparent; cursor: pointer; }
button:focus-visible, input:focus-visible { outline: 3px solid var(--blue); outline-offset: 2px; }
.said:empty { display: none; } .said { font-weight: 600; }
.verdict { color: var(--soft); font-size: 0.9em; border-left: 4px solid var(--blue); padding-left: 0.6em; overflow-wrap: anywhere; }
iframe { width: 100%; height: 720px; border: 1px solid var(--line); border-radius: 9px; }
"""
_BODY = """
<main>
<h1>@TITLE</h1>
<p>The same function decides at four places of a transformer: which answers it can give, what its parts add up to, where its attention tears, and whom
its tokens follow. Guess first; each answer was computed, and stands with the verdict of the claim behind it.</p>
@BODY
<p class="score" aria-live="polite"></p>
<noscript>The questions of this page need JavaScript; the gallery and the register of claims have all answers.</noscript>
</main>
<script>
const steps = [...document.querySelectorAll(".step")];
let seen = 0, made = 0;
for (const step of steps) {
  step.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = step.querySelector(".said");
    const given = new FormData(step).values().next().value ?? "";
    if (String(given).trim() === "") { said.textContent = "Guess first, anything: you will remember the answer better for it."; return; }
    if (step.dataset.done) return;
    step.dataset.done = "yes";
    const right = step.dataset.answer;
    const number = Number(right);
    const close = Number.isFinite(number) ? Math.abs(Number(given) - number) <= step.dataset.near * Math.abs(number) : given === right;
    made += 1;
    seen += Number(close);
    said.textContent = close ? "You saw it." : `You said ${given}.`;
    step.querySelector(".tells").hidden = false;
    step.querySelector("button").disabled = true;
    const frame = step.querySelector("iframe");
    if (frame) frame.srcdoc = frame.dataset.page; // only now: nothing is given away, and nothing runs before it is asked for
    document.querySelector(".score").textContent = `${seen} of ${made} seen, ${steps.length - made} to go.`;
  });
}
addEventListener("message", (event) => {
  const frame = [...document.querySelectorAll("iframe")].find((each) => each.contentWindow === event.source);
  const height = Number(event.data?.softgeomHeight);
  if (frame && height > 100 && height < 4000) frame.style.height = `${height + 8}px`;
});
</script>
"""
