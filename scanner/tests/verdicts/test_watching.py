"""Watching a layer while it trains: the verdicts of a scan at every epoch, from copies."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import softgeom as sg
from softgeom.layer import SoftmaxLayer
from softgeom.scanner import scan
from softgeom.watching import rescan

torch = pytest.importorskip("torch")
SHOWN, CLASSES = 40, 60  # the last classes never occur in what is trained on


class Bigrams(torch.nn.Module):
    """Which character follows: an embedding, a normalisation, an output layer."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(CLASSES, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, CLASSES, bias=bias)

    def forward(self, x):
        return self.head(self.norm(self.embed(x)))


@pytest.fixture
def text() -> torch.Tensor:
    """The characters of a page of documentation, the 40 most frequent ones."""
    page = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    listed = sorted(set(page), key=lambda c: (-page.count(c), c))[:SHOWN]
    return torch.tensor([listed.index(c) for c in page if c in listed][:6000])


def epochs(model, text, count, rate=0.03):
    """Train for so many epochs with label smoothing and decay, one yield after each."""
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.5)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(count):
        for part in range(0, len(text) - 1, 1000):
            x, y = text[part : part + 1000], text[part + 1 : part + 1001]
            loss = loss_of(model(x[: len(y)]), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield


@pytest.mark.parametrize(
    ("features", "bias"), [("box", True), ("auto", False), ("unbounded", True)]
)
def test_every_epoch_has_the_verdicts_of_a_scan(text, features, bias):
    torch.manual_seed(1)
    model = Bigrams(bias)
    lines: list[str] = []
    watch = sg.watch(model, features=features, log=lines.append)
    before = sg.scan(model, features=features).table["verdict"]
    kept = 0
    for _ in epochs(model, text, 6):
        seen, anew = watch(), sg.scan(model, features=features).table["verdict"]
        assert watch.scan.table["verdict"].tolist() == anew.tolist()
        assert watch.scan.verify()
        never, was = anew == "unargmaxable", before == "unargmaxable"
        assert seen.lost == tuple(np.flatnonzero(never & ~was))
        assert seen.regained == tuple(np.flatnonzero(was & ~never))
        kept += int((watch.scan.table["method"] == "before").sum())
        before = anew
    table = watch.table
    assert table["lost"].sum() > 0
    assert kept > CLASSES  # many verdicts come from the epoch before
    assert len(lines) == len(table) == 7
    assert "lost that ability" in "".join(lines)


def test_the_transformers_trainer_calls_it(text):
    callbacks = pytest.importorskip("transformers.trainer_callback")
    model, watch = Bigrams(bias=True), sg.watch(log=None)
    state, control = callbacks.TrainerState(), callbacks.TrainerControl()
    handler = callbacks.CallbackHandler([watch.transformers()], model, None, None, None)
    handler.on_train_begin(None, state, control)
    for _ in epochs(model, text, 2):
        handler.on_step_end(None, state, control)
        handler.on_epoch_end(None, state, control)
    assert [one.epoch for one in watch.history] == [0, 1, 2]
    state.is_world_process_zero = False
    handler.on_epoch_end(None, state, control)
    assert len(watch.history) == 3


def test_what_still_holds_is_kept_and_the_rest_is_scanned():
    rng = np.random.default_rng(0)
    W, b = rng.standard_normal((80, 6)), rng.standard_normal(80)
    W[60:] *= 0.1
    b[60:] -= 3
    found = sg.scan((W, b), verdicts_only=True)
    assert {found[t].verdict for t in range(60, 80)} == {"unargmaxable"}
    for change, kept in ((1e-4, True), (0.1, False)):
        moved = SoftmaxLayer(W + change * rng.standard_normal(W.shape), b)
        again = rescan(moved, found.features, found, seed=0)
        before = again.table["method"] == "before"
        assert before[60:].all() == kept
        assert again.verify()
        assert again.table["verdict"].equals(scan(moved).table["verdict"])


def test_an_undecided_class_keeps_its_last_verdict():
    watch = sg.watch(log=None)
    verdicts = ["argmaxable", "undecided", "unargmaxable", "undecided", "tied"]
    changes = []
    for verdict in verdicts:
        finding = SimpleNamespace(index=7, verdict=verdict)
        changes.append(watch._changes(SimpleNamespace(findings=[finding])))
    assert changes == [((), ()), ((), ()), ((7,), ()), ((), ()), ((), (7,))]


def test_what_cannot_be_watched_is_refused():
    with pytest.raises(ValueError, match="nothing to judge"):
        sg.watch()()
    watch = sg.watch(np.eye(3), log=None)
    with pytest.raises(ValueError, match="4 classes and had 3"):
        watch(np.eye(4, 3))
    assert len(watch.history) == 1
    wider = watch(np.eye(3, 5))  # more features: the evidence does not fit, the verdicts do
    assert wider.counts["argmaxable"] == 3
