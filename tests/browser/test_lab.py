"""The softmax explorer in JupyterLab: dragged by a mouse, read back by Python, set by Python."""

import re

import nbformat
import pytest

pytestmark = pytest.mark.browser

CELLS = """\
from papers.explorers import SoftmaxExplorer
explorer = SoftmaxExplorer([[0, 2], [-2, -1], [2, -1], [0, 0]])
explorer
---
print("python sees", explorer.W[3].tolist(), explorer.verdicts["verdict"][3])
---
explorer.set_layer([[0, 1], [1, 0], [-1, -1]], names=['up', 'right', 'down'])"""


def test_a_drag_reaches_python_and_python_reaches_back(jupyterlab, open_tab, drag):
    address, folder = jupyterlab
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    code = [nbformat.v4.new_code_cell(cell) for cell in CELLS.split("\n---\n")]
    notebook = nbformat.v4.new_notebook(cells=code, metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / "drag.ipynb")
    tab = open_tab(f"{address}/lab/tree/drag.ipynb", viewport={"width": 1300, "height": 1000})
    tab.set_default_timeout(40_000)
    tab.locator(".jp-Notebook .jp-Cell").first.click()
    tab.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']").wait_for()
    tab.keyboard.press("Shift+Enter")
    tab.locator(".softgeom [aria-live]", has_text="c₄ can never win.").wait_for()
    handle = tab.locator('[data-name="class-3"]')
    handle.scroll_into_view_if_needed()
    drag(tab, "class-3", 0, -150)
    tab.locator(".softgeom [aria-live]", has_text="Every class can win.").wait_for()
    handle.focus()
    tab.keyboard.press("ArrowRight")  # a shortcut of JupyterLab, which must not act here
    tab.locator('[data-name="class-3"][aria-label*="(0.06,"]').wait_for()
    shown = handle.get_attribute("aria-label").replace("−", "-")
    x, y = map(float, re.search(r"\((.*?), (.*?)\)", shown).groups())

    tab.locator(".jp-Notebook .jp-Cell").nth(1).locator(".cm-content").click()
    tab.keyboard.press("Shift+Enter")
    output = tab.locator(".jp-Cell").nth(1).locator(".jp-OutputArea-output")
    output.wait_for()
    seen = re.search(r"python sees \[(.*), (.*)\] (\w+)", output.inner_text())
    assert [float(seen[1]), float(seen[2])] == pytest.approx([x, y], abs=0.006)
    assert y < -1
    assert seen[3] == "argmaxable"

    tab.keyboard.press("Shift+Enter")  # the third cell: Python changes the layer
    tab.locator('[data-name="class-0"][aria-label^="class up at"]').wait_for()
    assert tab.locator(".softgeom .sg-handles > g").count() == 4  # three classes and x
