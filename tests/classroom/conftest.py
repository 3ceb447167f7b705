"""The lessons' notebooks: read, executed, and what they would give away."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from jupyter_client import AsyncKernelManager
from jupyter_core.utils import run_sync
from lesson_cases import text_of
from nbclient import NotebookClient

from classroom import LESSONS, asking, folding, leaders, rankings, recorded, trusting, winning
from classroom.pages import names
from papers.hardmax import check_theorem
from softgeom.layer import SoftmaxLayer, Unbounded
from softgeom.scanner import scan

FILES = dict(zip(LESSONS, names(), strict=True))


@pytest.fixture(scope="session")
def lesson(repository: Path) -> Callable[[str], Any]:
    """`lesson(name)` is its notebook, as it lies in the clone."""
    return lambda name: nbformat.read(
        repository / "notebooks" / "lessons" / f"{FILES[name]}.ipynb", as_version=4
    )


# Before each notebook the kernel forgets names, answers and folder; what took long to import stays.
FORGET = """
%reset -f
import os, sys
for name in [name for name in sys.modules if name.partition(".")[0] == "classroom"]:
    del sys.modules[name]
os.chdir({folder!r})
"""


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AsyncKernelManager]:
    """One kernel of this environment for all lessons, away from anybody's start-up files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
        patch.delenv("JUPYTER_PATH", raising=False)
        manager = AsyncKernelManager(kernel_name="python3")
        run_sync(manager.start_kernel)()
        yield manager
        run_sync(manager.shutdown_kernel)(now=True)


@pytest.fixture
def execute(kernel: AsyncKernelManager, tmp_path: Path) -> Callable[[Any], list[str]]:
    """`execute(notebook)` runs it in the test's folder; an error in a cell raises."""

    def execute_(notebook: Any) -> list[str]:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(FORGET.format(folder=str(tmp_path))))
        client = NotebookClient(notebook, km=kernel, timeout=60, startup_timeout=120)
        client.execute()
        client.kc.stop_channels()
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        outputs = [output for cell in cells for output in cell.outputs]
        assert "stderr" not in {output.get("name") for output in outputs}
        return list(map(text_of, outputs))

    return execute_


@pytest.fixture(scope="session")
def explorers() -> Callable[[Any], list[dict[str, Any]]]:
    """`explorers(notebook)`: the state of every explorer that it showed."""

    def states(notebook: Any) -> list[dict[str, Any]]:
        kept = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
        return [model["state"] for model in kept.values() if "hidden" in model["state"]]

    return states


@pytest.fixture(scope="session")
def spoilers() -> Callable[[str], list[str]]:
    """`spoilers(name)`: patterns of what a lesson asks its learners to guess."""
    return _spoilers


def _spoilers(name: str) -> list[str]:
    """Computed as the lesson computes it."""
    if name == "rankings":
        counts = [rankings.realised(rankings.LAYER.W, b) for b in (None, rankings.BIAS)]
        return [rf"\b{count}\b" for count in counts] + [f"{rankings.digits(*rankings.GPT2):,}"]
    if name == "winning":
        rng = np.random.default_rng(0)
        crowds = [SoftmaxLayer(rng.normal(size=(100, d))) for d in (2, 4, 8, 16)]
        counts = [scan(crowd, features=Unbounded()).counts["argmaxable"] for crowd in crowds]
        lost = int(recorded.value("12_first_scan", "ppocr_unargmaxable"))
        crowd = len(winning.winners(winning.CROWD))
        told = ["unargmaxable", "let D win", rf"\*\*{lost}\*\*", rf"\b{crowd}\b"]
        return told + [rf"\s{count}\b" for count in counts]
    if name == "folding":
        coupling = folding.first_folding_coupling(folding.PAIR)
        mass = folding.mass(folding.PAIR, folding.PAIR_COUPLING, 1.0)
        gpt = recorded.penalised_gpt()
        return [
            rf"c = \*\*{coupling:.4g}",
            f"{mass:.3f}",
            "smallest slope",
            f"{gpt['score']:.2f} nats",
        ]
    if name == "trusting":
        return ["is no proof", rf"\b{trusting.blocking_classes_of_a_character()}\b"]
    if name == "asking":
        can_win = recorded.evidence("19_beyond_one_softmax", "001-mask-frees")["can_win"]
        told = [f"{len(asking.freeing())} of 4 cases", f"{asking.pairs_together()} pairs"]
        told = [rf"\*\*{words}" for words in (*told, f"{can_win} can win")]
        return [*told, "argmaxable", r"\bma2\b"]
    if name == "parts":
        share = recorded.value("30_normalisation", "changed_without_norm_gpt")
        told = ["gets the largest weight", "exactly the same", rf"\*\*{share:.0%}\*\*"]
        return [*told, r"array\(\[\d\.\d+"]  # the explorer's weights
    found = check_theorem(leaders.START, np.eye(2), leaders.ALPHA)
    named = ", ".join(str(i + 1) for i in np.flatnonzero(found.leaders))
    told = [rf"{found.leaders.sum()} leaders", rf"{len(found.sites)}(\*\*)? places"]
    told += [rf"\[{named}\]", "same\\*\\*|others\\*\\*", "theorem holds"]
    kept = recorded.value("43_leader_explanations", "deleting_leaders_keeps")
    return [*told, rf"\*\*{100 * kept:.0f}%"]
