"""The lessons have their parts, and the start page runs and gives nothing away."""

import re

import nbformat
import pytest

import classroom
from classroom import rankings


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_a_lesson_has_its_parts(lesson, name):
    cells = lesson(name).cells
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
    # JupyterLab shows a collapsed cell's first line
    assert all(cell.source.startswith("# Solution") for cell in solutions)
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    for number in classroom.LESSONS[name].EXERCISES:
        assert f'classroom.check("{name}-{number}", answer)' in code
    for key in classroom.LESSONS[name].PREDICTIONS:
        assert f'classroom.reveal("{name}-{key}", guess)' in code
    assert len(re.findall(r"Explorer\(", code)) == code.count("classroom.veil(") > 0
    assert "explanation = ...\nclassroom.export(" in code
    assert text.index("## Explain it to your neighbour") < text.index("## What to take away")


def test_the_start_page_runs(repository, execute, explorers):
    notebook = nbformat.read(repository / "notebooks" / "start.ipynb", as_version=4)
    said = "\n".join(execute(notebook))
    assert "SoftmaxExplorer" in said
    (count,) = re.findall(r"rankings realised: (\d+)", said)
    asked = (rankings.LAYER.W, None), (rankings.LAYER.W, rankings.BIAS), (rankings.FIVE.W, None)
    # other numbers than the first lesson asks for
    assert int(count) not in {rankings.realised(W, b) for W, b in asked}
    # the second lesson asks whether that can be
    assert not re.search("unargmaxable|never wins", said)
    assert not any(state["presets"] for state in explorers(notebook))
    for cell in notebook.cells:
        for target in re.findall(r"\]\(([^)#:]+)\)", cell.source):
            assert (repository / "notebooks" / target).exists(), target
