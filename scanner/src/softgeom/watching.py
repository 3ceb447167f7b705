"""``softgeom.watch``: which outputs lose the ability to win while a model trains, epoch by epoch.

The weights are copied before they are judged, so that later steps change nothing of what is said.

Most evidence of the last epoch still proves its verdict in this one: a point at which a class won,
and weights with slack, are certified again, all points in one product and all weights in another.
Only classes whose evidence fails are scanned anew, so that every verdict is as proven as `scan`'s.
Weights without slack (no bias, unbounded features) hold for one layer alone. To mend weights takes
as long as to find new ones, so that nothing is mended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd

from softgeom import scanner
from softgeom.certifying.checker import Checker
from softgeom.certifying.slack import slack_bounds
from softgeom.certifying.verdict import BlockingClasses, Finding, Witness
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.options import Options, question, refuse_threshold, spelled_out
from softgeom.rounding import demand_standard_model
from softgeom.routes import winners
from softgeom.scan_result import Scan
from softgeom.searching.twins import find_twins
from softgeom.verdict_table import escape_token

_NAMED = 10  # outputs that a line names; lost and regained have them all
_NEVER, _CAN = "unargmaxable", ("argmaxable", "tied")


@dataclass(frozen=True)
class Epoch:
    """What one look found: the number of classes of each verdict, the classes that could win at
    their last verdict and now can not, those for which it is the other way round, and the seconds
    that it took.
    """

    epoch: int
    counts: dict[str, int]
    lost: tuple[int, ...]
    regained: tuple[int, ...]
    seconds: float
    text: str

    def __str__(self) -> str:
        return self.text


class Watch:
    """Judges a model's last layer whenever it is called; ``history`` holds an `Epoch` for each
    call, ``scan`` the last verdicts with their evidence.
    """

    def __init__(
        self, model: Any, log: Callable[[str], object] | None, seed: int, options: Any
    ) -> None:
        self.history: list[Epoch] = []
        self.scan: Scan | None = None
        self._model, self._log, self._seed, self._options = model, log, seed, options
        self._last: dict[int, str] = {}  # of each class the last verdict that was proven
        if model is not None:
            self()

    def __repr__(self) -> str:
        said = self.history[-1].text if self.history else "nothing judged yet"
        return f"Watch({said})"

    def __call__(self, model: Any = None) -> Epoch:
        """Judge the model as it is now, or the one that is given; ValueError where its layer cannot
        be read, or has another number of classes than at the last look.
        """
        started = time.perf_counter()
        model = self._model if model is None else model
        if model is None:
            raise ValueError("nothing to judge: pass the model to sg.watch, or to each call.")
        head, features, _ = question(model, **self._options)
        refuse_threshold(head, "the largest score says nothing about it")
        layer, before = head.layer, self.scan
        if before is not None and before.layer.classes != layer.classes:
            were, are = before.layer.classes, layer.classes
            raise ValueError(
                f"the layer has {are:,} classes and had {were:,}: start another sg.watch."
            )
        self.scan = rescan(layer, features, before, seed=self._seed)
        lost, regained = self._changes(self.scan)
        counts, epoch = self.scan.counts, len(self.history)
        text = _sentence(epoch, layer, counts, lost, regained)
        seconds = time.perf_counter() - started
        self.history.append(Epoch(epoch, counts, lost, regained, seconds, text))
        if self._log is not None:
            self._log(text)
        return self.history[-1]

    def _changes(self, found: Scan) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The classes that could win and now can not, and the other way round; a class that is
        undecided keeps its last verdict.
        """
        now = {f.index: f.verdict for f in found.findings if f.verdict != "undecided"}
        known = [(t, self._last[t], verdict) for t, verdict in now.items() if t in self._last]
        lost = tuple(t for t, was, is_ in known if was in _CAN and is_ == _NEVER)
        regained = tuple(t for t, was, is_ in known if was == _NEVER and is_ in _CAN)
        self._last |= now
        return lost, regained

    @property
    def table(self) -> pd.DataFrame:
        """One row per look: epoch, the number of classes of each verdict, how many lost and how
        many regained the ability to win, seconds.
        """
        rows = [
            {"epoch": one.epoch, **one.counts}
            | {"lost": len(one.lost), "regained": len(one.regained), "seconds": one.seconds}
            for one in self.history
        ]
        return pd.DataFrame(rows)

    def transformers(self) -> Any:
        """A ``TrainerCallback`` that judges the trained model before the first epoch and after each
        one, in the main process.
        """
        from transformers import TrainerCallback

        watch = self

        class WatchCallback(TrainerCallback):
            def on_train_begin(
                self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
            ) -> None:
                if state.is_world_process_zero:
                    watch(model)

            on_epoch_end = on_train_begin

        return WatchCallback()

    def lightning(self) -> Any:
        """A Lightning ``Callback`` that does the same."""
        try:
            from lightning.pytorch import Callback
        except ImportError:
            from pytorch_lightning import Callback

        watch = self

        class WatchCallback(Callback):
            def on_train_start(self, trainer: Any, pl_module: Any) -> None:
                if trainer.is_global_zero:
                    watch(pl_module)

            on_train_epoch_end = on_train_start

        return WatchCallback()


@spelled_out(Options)
def watch(
    model: Any = None,
    *,
    log: Callable[[str], object] | None = print,
    seed: int = 0,
    **options: Unpack[Options],
) -> Watch:
    """Which outputs lose, or regain, the ability to win while a model trains.

    The result is called after each epoch. It is as certain as `softgeom.scan`. It is mostly far
    cheaper, since it starts from the proofs of the epoch before; in a layer without bias each class
    that can never win is proven anew. Its `transformers()` and `lightning()` are callbacks for
    these trainers.

    Parameters
    ----------
    model : anything that `softgeom.load` takes, optional
        Judged at once, and again at each call. Without it each call gets the model, or ``(W, b)``.
    log : function of a text, or None
        What is done with the line about each epoch.
    seed : int
        As for `softgeom.scan`.
    features, bound, low, after, weight, bias, tokens, revision, without_bias, blank, rule
        As for `softgeom.scan`.

    Raises
    ------
    ValueError
        When the model or a feature set cannot be used as asked.

    Examples
    --------
    >>> import numpy as np
    >>> import softgeom as sg
    >>> W = np.array([[1.0, 0], [-1, 1], [-1, -1], [2, 0]])
    >>> watch = sg.watch(W)
    epoch 0: 1 of 4 outputs can never win
    >>> W[3, 0] = 0.5  # a step of training
    >>> watch().lost
    epoch 1: 1 of 4 outputs can never win; 1 lost that ability: 3; 1 regained it: 0
    (3,)
    """
    return Watch(model, log, seed, options)


@np.errstate(all="ignore")
def rescan(layer: SoftmaxLayer, features: FeatureSet, before: Scan | None, **work: Any) -> Scan:
    """The verdict on every class of a layer (C, d), from evidence about an earlier layer of the
    same shape where that still holds; ``work`` as for `softgeom.scanner.scan`.
    """
    if before is None or before.layer.W.shape != layer.W.shape:
        return scanner.scan(layer, features=features, verdicts_only=True, **work)
    demand_standard_model()
    features.check(layer.dimension)
    # what a scan calls tied or dominated is for the scan
    special = set().union(*find_twins(layer, features))
    old = [f for f in before.findings if f.index not in special]
    found = _still_won(Checker(layer, features), old) | _still_lost(layer, features, old)
    left = np.setdiff1d(np.arange(layer.classes), list(found))
    if len(left):
        again = scanner.scan(layer, left, features=features, verdicts_only=True, **work)
        found |= {f.index: f for f in again.findings}
    return Scan(layer, features, [found[t] for t in range(layer.classes)])


def _still_won(checker: Checker, old: list[Finding]) -> dict[int, Finding]:
    """Classes that win at the points of an earlier layer."""
    won = {f.index: f.evidence.point for f in old if isinstance(f.evidence, Witness)}
    if not won:
        return {}
    return winners(checker, won, checker.certify_many(list(won.values()), list(won)), "before")


def _still_lost(
    layer: SoftmaxLayer, features: FeatureSet, old: list[Finding]
) -> dict[int, Finding]:
    """Classes that the weights of an earlier layer rule out with slack."""
    held = {f.index: f.evidence for f in old if isinstance(f.evidence, BlockingClasses)}
    bounds = slack_bounds(layer, features, list(held), list(held.values())).tolist()
    proven = zip(held.items(), bounds, strict=True)
    return {
        t: Finding(t, few, "before", 0, bound, np.nan) for (t, few), bound in proven if bound <= 0
    }


def _sentence(
    epoch: int,
    layer: SoftmaxLayer,
    counts: dict[str, int],
    lost: Sequence[int],
    regained: Sequence[int],
) -> str:
    text = f"epoch {epoch}: {counts[_NEVER]:,} of {layer.classes:,} outputs can never win"
    if counts["undecided"]:
        text += f", {counts['undecided']:,} undecided"
    if lost:
        text += f"; {len(lost):,} lost that ability: {_named(layer, lost)}"
    if regained:
        text += f"; {len(regained):,} regained it: {_named(layer, regained)}"
    return text


def _named(layer: SoftmaxLayer, classes: Sequence[int]) -> str:
    names = [escape_token(layer.token(t)) for t in classes[:_NAMED]]
    return " ".join(names) + (" ..." if len(classes) > _NAMED else "")
