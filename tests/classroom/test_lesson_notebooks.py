"""The lessons run from top to bottom: unanswered, with their own solutions checked, and with nonsense for answers."""

from __future__ import annotations

import re
import time

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import classroom
from classroom import leaders, masks, pairs, rankings, recorded, tearing, trusting, winning
from softgeom.bottleneck import SoftmaxLayer, Unbounded, scan
from softgeom.hardmax import check_theorem

FILES = {"rankings": "1_rankings_and_regions", "winning": "2_who_can_win", "tearing": "3_where_attention_tears", "leaders": "4_leaders", "trusting": "5_trust_but_verify", "asking": "6_ask_more"}  # fmt: skip
PICTURE = "a picture"  # what an output counts as that shows one
GUESSES = {
    "rankings-guess": "24", "rankings-guess_bias": "24", "rankings-guess_digits": "768", "winning-guess": "True",
    "winning-guess_crowd": "50", "tearing-guess": "7", "tearing-guess_mass": '"equal"', "leaders-guess": "8", "leaders-guess_slower": "False",
    "winning-guess_real": "0", "tearing-guess_real": '"most"', "leaders-guess_real": "50", "trusting-guess": "True", "trusting-guess_captors": "3",
    "asking-guess": "0", "asking-guess_pairs": "15", "asking-guess_real": "5",
}  # fmt: skip
NONSENSE = ['"banana"', "[1, 2, 3]", "lambda: 3", 'float("nan")', "{1: 2}", "[[1, 2], [3]]"]


@pytest.fixture
def execute(monkeypatch, tmp_path):
    """`execute(notebook)` runs it in a kernel of this environment, away from anybody's start-up files; an error in a cell raises."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.delenv("JUPYTER_PATH", raising=False)

    def execute_(notebook) -> list[str]:
        NotebookClient(notebook, kernel_name="python3", timeout=60, startup_timeout=120).execute()
        return [_text(output) for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]

    return execute_


def _text(output) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return PICTURE
    return data.get("text/markdown") or data.get("text/plain") or output.get("text", "")


def _read(repository, name: str):
    return nbformat.read(repository / "notebooks" / "lessons" / f"{FILES[name]}.ipynb", as_version=4)


@pytest.mark.parametrize("name", FILES)
def test_a_lesson_runs_unanswered_and_its_solutions_are_right(repository, execute, name):
    notebook = _read(repository, name)
    numbers = list(classroom.LESSONS[name].EXERCISES)
    solutions = ", ".join(f"{number}: solution_{number}" for number in numbers)
    notebook.cells.append(nbformat.v4.new_code_cell(f"{{k: classroom.check(f'{name}-{{k}}', v) for k, v in {{{solutions}}}.items()}}"))  # fmt: skip
    notebook.cells.append(nbformat.v4.new_code_cell("import sys; 'torch' in sys.modules"))
    started = time.monotonic()
    texts = execute(notebook)
    assert time.monotonic() - started < 60
    expected = len(numbers) + len(classroom.LESSONS[name].PREDICTIONS)
    assert sum("**Your turn.**" in text for text in texts) == expected
    assert len(re.findall(r"\d: Right\.", texts[-2])) == len(numbers), texts[-2]
    assert texts[-1] == "False"


def _spoilers(name: str) -> list[str]:
    """Patterns of what a lesson asks its learners to guess, computed as the lesson computes it."""
    if name == "rankings":
        counts = [rankings.realised(rankings.LAYER.W, b) for b in (None, rankings.BIAS)]
        return [rf"\b{count}\b" for count in counts] + [f"{rankings.digits(*rankings.GPT2):,}"]
    if name == "winning":
        rng = np.random.default_rng(0)
        crowds = [SoftmaxLayer(rng.normal(size=(100, d))) for d in (2, 4, 8, 16)]
        counts = [scan(crowd, features=Unbounded()).counts["argmaxable"] for crowd in crowds]
        dead = int(recorded.value("12_first_scan", "ppocr_imprisoned"))
        return ["unargmaxable", "let D win", rf"\*\*{dead}\*\*", rf"\b{len(winning.winners(winning.CROWD))}\b"] + [
            rf"\s{count}\b" for count in counts
        ]
    if name == "tearing":
        coupling = tearing.first_folding_coupling(tearing.PAIR)
        mass = tearing.mass(tearing.PAIR, tearing.PAIR_COUPLING, 1.0)
        return [
            rf"c = \*\*{coupling:.4g}",
            f"{mass:.3f}",
            "smallest slope",
            f"{tearing._of_the_gpt()['score']:.2f} nats",
        ]
    if name == "trusting":
        return ["is no proof", rf"\b{trusting.captors_of_a_character()}\b"]
    if name == "asking":
        return [
            rf"\*\*{len(masks.freeing())} of 4 cases",
            rf"\*\*{pairs.pairs_together()} pairs",
            rf"\*\*{masks._freed()[0]} can win",
            "argmaxable",
            r"\bma2\b",
        ]
    found = check_theorem(leaders.START, np.eye(2), leaders.ALPHA)
    named = ", ".join(str(i + 1) for i in np.flatnonzero(found.leaders))
    return [
        rf"{found.leaders.sum()} leaders",
        rf"{len(found.sites)}(\*\*)? places",
        rf"\[{named}\]",
        "same\\*\\*|others\\*\\*",
        "theorem holds",
        rf"\*\*{leaders._kept():.0f}%",
    ]


def _explorers(notebook) -> list[dict]:
    """The state of every explorer that the notebook showed, as its browser would get it."""
    models = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    return [model["state"] for model in models if "veiled" in model["state"]]


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_given_away_before_a_guess(repository, execute, name):
    notebook = _read(repository, name)
    texts = execute(notebook)
    given_away = {spoiler: text for spoiler in _spoilers(name) for text in texts if re.search(spoiler, text)}
    assert not given_away
    explorers = _explorers(notebook)
    assert explorers
    assert all(state["veiled"] and not state["presets"] for state in explorers)
    assert any("**Guess first.**" in text for text in texts)


@pytest.mark.parametrize("name", FILES)
def test_a_guess_reveals_what_was_hidden(repository, execute, name):
    """The positive control of the test above: with every guess made, each spoiler appears, and the veils that waited for a guess lift."""
    notebook = _read(repository, name)
    for cell, after in zip(notebook.cells, notebook.cells[1:], strict=False):
        if asked := re.search(r'classroom\.reveal\("([^"]+)"', after.source):
            assert "guess = ..." in cell.source
            cell.source = cell.source.replace("guess = ...", f"guess = {GUESSES[asked[1]]}")
    texts = execute(notebook)
    assert [spoiler for spoiler in _spoilers(name) if not any(re.search(spoiler, text) for text in texts)] == []
    assert not any("**Guess first.**" in text for text in texts)
    waiting = sum(f'until="{name}-{number}"' in cell.source for cell in notebook.cells for number in classroom.LESSONS[name].EXERCISES)  # fmt: skip
    assert sum(state["veiled"] for state in _explorers(notebook)) == waiting


def test_nonsense_gets_sentences_and_no_tracebacks(repository, execute):
    notebook = _read(repository, "rankings")
    asked = [cell for cell in notebook.cells if re.search(r"^(answer|guess) = \.\.\.$", cell.source, re.MULTILINE)]
    for number, cell in enumerate(asked):
        cell.source = cell.source.replace("= ...", f"= {NONSENSE[number % len(NONSENSE)]}")
    texts = execute(notebook)
    assert len(asked) == len(classroom.LESSONS["rankings"].EXERCISES) + len(classroom.LESSONS["rankings"].PREDICTIONS)
    assert sum("**I cannot read that.**" in text for text in texts) == len(asked)


@pytest.mark.parametrize("name", FILES)
def test_a_lesson_has_its_parts(repository, name):
    cells = _read(repository, name).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for part in ("# Lesson", "**You will learn**", "**You need**", "## What to take away"):
        assert part in text
    assert re.search(r"about \d\d minutes", text)
    assert re.search(r"^#+ .*\bmodel\b", text, re.MULTILINE)
    opening = text[text.index("**You will learn**") : text.index("**You need**")]
    assert opening.count("\n- ") == 3
    solutions = [cell for cell in cells if "solution" in cell.metadata.get("tags", [])]
    assert len(solutions) == len(classroom.LESSONS[name].EXERCISES)
    assert all(cell.metadata["jupyter"] == {"source_hidden": True} for cell in solutions)
    assert all(
        cell.source.startswith("# Solution") for cell in solutions
    )  # JupyterLab shows a collapsed cell's first line
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    for number in classroom.LESSONS[name].EXERCISES:
        assert f'classroom.check("{name}-{number}", answer)' in code
    for key in classroom.LESSONS[name].PREDICTIONS:
        assert f'classroom.reveal("{name}-{key}", guess)' in code
    assert len(re.findall(r"Explorer\(", code)) == code.count("classroom.veil(") > 0
    assert "explanation = ...\nclassroom.export(" in code
    assert text.index("## Explain it to your neighbour") < text.index("## What to take away")


def test_the_start_page_runs(repository, execute):
    notebook = nbformat.read(repository / "notebooks" / "start.ipynb", as_version=4)
    texts = execute(notebook)
    assert any("SoftmaxExplorer" in text for text in texts)
    (count,) = [int(found[1]) for text in texts if (found := re.search(r"rankings realised: (\d+)", text))]
    asked = (rankings.LAYER.W, None), (rankings.LAYER.W, rankings.BIAS), (rankings.FIVE.W, None)
    assert count not in {rankings.realised(W, b) for W, b in asked}  # other numbers than the first lesson asks for
    assert not any(
        "unargmaxable" in text or "never wins" in text for text in texts
    )  # the second lesson asks whether that can be
    assert not any(state["presets"] for state in _explorers(notebook))
    for cell in notebook.cells:
        for target in re.findall(r"\]\(([^)#:]+)\)", cell.source):
            assert (repository / "notebooks" / target).exists(), target
