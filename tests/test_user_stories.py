"""Ten stories of people who use the library from Python, each as they would write it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softgeom as sg
from softgeom.commands import main

RNG = np.random.default_rng(0)
W = np.array([[1.0, 0], [-1, 1], [-1, -1], [0, 0]])
NAMES = ["north", "east", "west", "middle"]


def a_folder_of_transformers() -> None:
    """The layer of a saved model is the live model's, and so is what its norm can feed it."""
    torch, transformers = map(pytest.importorskip, ("torch", "transformers"))
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 40, "n_positions": 8}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).eval()
    model.save_pretrained("model")
    head, fed, ids = sg.load("model"), [], torch.arange(6)[None]
    model.lm_head.register_forward_pre_hook(lambda _, inputs: fed.append(inputs[0][0]))
    with torch.no_grad():
        logits = model(ids).logits[0]
    np.testing.assert_allclose(head.layer.logits(fed[0].numpy()), logits, atol=1e-5)
    found = sg.scan("model", range(5), features="norm")
    assert found.features == head.features
    assert found.verify()


def a_training_loop() -> None:
    """What a scan found stays true of the weights that it judged, and leaves the model alone."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 9))
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=1.0), []
    for _ in range(3):
        kept.append(sg.scan(model, features="auto"))
        torch.nn.functional.cross_entropy(model(torch.ones(2, 3)), torch.arange(2)).backward()
        assert model.training
        optimizer.step()
    assert all(found.verify() for found in kept)
    assert not np.array_equal(kept[0].layer.W, kept[2].layer.W)
    assert kept[0].features == sg.Box(100.0, low=0.0)


def a_linear_model_of_scikit_learn() -> None:
    """A pipeline never predicts what is lost over the features that its steps give."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = RNG.uniform(-1, 1, (300, 1))
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.05, 0.05])]
    model = make_pipeline(StandardScaler(), linear_model.LogisticRegression(C=1e-3)).fit(X, y)
    Z = model[:-1].transform(X)
    found = sg.scan(model, features=sg.Box(Z.max(), low=Z.min()))
    lost = {found.layer.token(t) for t in found if found[t].verdict == "unargmaxable"}
    assert not lost & set(model.predict(X))
    assert set(found.table["token"]) == set(y)


def an_index_for_retrieval() -> None:
    """The point of a possible answer is a query, and returns exactly these documents."""
    index = RNG.standard_normal((60, 5))
    index /= np.linalg.norm(index, axis=1, keepdims=True)
    answers = sg.ask(index, together=[[0, 1], [2, 3]], sample=5, seed=1)
    possible = [answer for answer in answers.answers if answer.verdict == "possible"]
    assert possible
    for answer in possible:
        witness: Any = answer.evidence
        assert set(np.argsort(-index @ witness.point)[:2]) == set(answer.order.blocks[0])


def a_gate_of_a_release() -> None:
    """One line fails the build; what the last release had lost is excused by its folder."""
    np.savez("old.npz", W=W, tokens=NAMES)
    np.savez("new.npz", W=np.vstack([W, [0.1, 0]]), tokens=[*NAMES, "near"])
    sg.scan("old.npz", out="old")
    gate = ["scan", "--fail-on", "unargmaxable", "--expected", "old", "--quiet", "--out"]
    assert main([*gate, "again", "old.npz"]) == 0
    assert main([*gate, "new", "new.npz"]) == 4
    assert main(["diff", "old", "again", "--exit-code"]) == 0
    assert main(["diff", "old", "new", "--exit-code"]) == 4


def a_notebook() -> None:
    """A line, a card and a picture; a class is found by its name."""
    pytest.importorskip("matplotlib").use("Agg")
    found = sg.scan(pd.DataFrame(W, NAMES))
    assert "\n" not in repr(found)
    assert "middle" in found._repr_html_()
    assert found["middle"].verdict == "unargmaxable"
    assert found.plot().get_xlabel() == "classes in order"
    assert "middle" in str(sg.explain(found.layer, "middle"))


def tables_of_other_libraries() -> None:
    """Matrices of any library go in, tables that any library reads come out."""
    sparse = pytest.importorskip("scipy.sparse").csr_matrix(W)
    np.save("W.npy", W)
    given = [W.tolist(), W.data, sparse, pd.DataFrame(W), "W.npy"]
    tables = [sg.scan(each).table for each in given]
    assert all(table.equals(tables[0]) for table in tables)
    found = sg.scan(pd.DataFrame(W, NAMES), out="found")
    pd.testing.assert_frame_equal(sg.read_verdicts("found"), found.table, check_dtype=False)
    pytest.importorskip("pyarrow")
    found.to_parquet("found.parquet")
    assert pd.read_parquet("found.parquet")["token"].tolist() == NAMES


def a_cluster() -> None:
    """The blocks go to a Dask client that is open, and the table is the same."""
    distributed = pytest.importorskip("distributed")
    layer = RNG.standard_normal((90, 3))
    with distributed.Client(n_workers=1, processes=False, dashboard_address=None) as client:
        found = sg.scan(layer, block=30, address=client)
    assert found.table.equals(sg.scan(layer, block=30).table)


def functions_of_the_papers() -> None:
    """Arrays and tensors, one sequence or a batch, one head or several."""
    torch = pytest.importorskip("torch")
    from papers.hardmax import hardmax_step
    from papers.margins import attention_jacobian_blocks, log_barrier

    X, W_Q, W_K = (RNG.standard_normal(shape) for shape in ((2, 6, 4), (3, 2, 4), (3, 2, 4)))
    blocks = attention_jacobian_blocks(X, W_Q, W_K)
    tensors = [torch.as_tensor(each) for each in (X, W_Q, W_K)]
    np.testing.assert_allclose(log_barrier(X, W_Q, W_K), -np.linalg.slogdet(blocks)[1], atol=1e-9)
    np.testing.assert_allclose(log_barrier(*tensors), log_barrier(X, W_Q, W_K), atol=1e-12)
    step = hardmax_step(X, np.eye(4), 1.0)
    for one in (
        hardmax_step(X[1], np.eye(4), 1.0),
        hardmax_step(tensors[0][1], torch.eye(4).double(), 1.0),
    ):
        np.testing.assert_allclose(one, step[1], atol=1e-12)


OWN = """
from dataclasses import dataclass
import numpy as np
import softgeom as sg

@dataclass(frozen=True, eq=False)
class Sphere(sg.Ball):
    kind = "sphere"

if __name__ == "__main__":
    W = np.random.default_rng(0).standard_normal((40, 3))
    found = sg.scan(W, features=Sphere(2.0), n_jobs=2, block=20)
    assert found.verify() and found.counts == sg.scan(W, features=sg.Ball(2.0)).counts
"""


def a_set_of_ones_own() -> None:
    """A feature set of a script goes to the processes that it starts."""
    Path("own.py").write_text(OWN)
    done = subprocess.run([sys.executable, "own.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


STORIES = [
    a_folder_of_transformers, a_training_loop, a_linear_model_of_scikit_learn,
    an_index_for_retrieval, a_gate_of_a_release, a_notebook, tables_of_other_libraries, a_cluster,
    functions_of_the_papers, a_set_of_ones_own,
]  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_story_goes_as_it_should(
    story: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    story()
