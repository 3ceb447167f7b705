"""The verdicts on classes of a layer, each with its evidence: a table, a check, a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd

from softgeom.ceiling.bound import Certifier
from softgeom.certifying.evidence_file import load_parts, save_parts
from softgeom.certifying.kernel import verify_parts
from softgeom.certifying.verdict import BlockingClasses, Evidence, Finding, Twin
from softgeom.head_facts import HeadFacts, with_facts
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.readout import PLAIN, Readout
from softgeom.verdict_table import count_verdicts, verdict_table


@dataclass(frozen=True, eq=False)
class Scan:
    """The verdicts on some or all classes of a layer over a feature set; ``wider``: proofs for some
    of its unargmaxable classes over others, a scan each (widening.py); ``head``: what is known
    about the layer, where it was read from a model.
    """

    layer: SoftmaxLayer
    features: FeatureSet
    findings: Sequence[Finding]
    wider: tuple[Scan, ...] = ()
    head: HeadFacts | None = None
    _position: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        # a tuple: positions, evidence and ceilings would speak of other classes after a sort
        object.__setattr__(self, "findings", tuple(self.findings))
        object.__setattr__(self, "_position", {f.index: n for n, f in enumerate(self.findings)})
        if len(self._position) < len(self.findings):
            seen = [f.index for f in self.findings]
            twice = next(t for t in seen if seen.count(t) > 1)
            raise ValueError(f"Class {twice} occurs twice: each is decided once.")

    def __repr__(self) -> str:
        counted = [f"{count:,} {verdict}" for verdict, count in self.counts.items() if count]
        asked = f"{len(self):,} of {self.layer.classes:,} classes, {self.features.describe()}"
        return f"Scan({asked}: {', '.join(counted) or 'nothing asked'})"

    def __str__(self) -> str:
        return with_facts(repr(self), self.head)

    def _repr_html_(self) -> str:
        from softgeom.card import card, sentences

        size = f"{self.layer.classes:,} classes over {self.layer.dimension} features"
        known = self.head.lines() if self.head else ()
        facts = sentences([f"{size}, {self.features.describe()}", *known])
        ceiling = self.ceiling if self.bounds_probabilities else None
        how: Any = {"ceiling": ceiling, "whole": False}
        return card(self.table, self.counts, "Which outputs can be the answer?", facts, **how)

    def __len__(self) -> int:
        """Number of classes that were asked about."""
        return len(self.findings)

    def __iter__(self) -> Iterator[int]:
        """The classes that were asked about, by number."""
        return (finding.index for finding in self.findings)

    def __contains__(self, class_: object) -> bool:
        """Whether a class was asked about, by number or by token."""
        if isinstance(class_, str):
            tokens = self.layer.tokens
            return tokens is not None and any(tokens[t] == class_ for t in self)
        return isinstance(class_, int | np.integer) and int(class_) in self._position

    @overload
    def __getitem__(self, class_: int | str) -> Finding: ...
    @overload
    def __getitem__(self, class_: slice) -> Scan: ...
    def __getitem__(self, class_: int | str | slice) -> Finding | Scan:
        """The finding for a class, by number or by token (the first class of that name); of a slice
        of class numbers the scan of those that were asked about.
        """
        if isinstance(class_, slice):
            chosen = range(self.layer.classes)[class_]
            part = [f for f in self.findings if f.index in chosen]
            wider = [each[class_] for each in self.wider]
            return replace(self, findings=part, wider=tuple(each for each in wider if len(each)))
        if isinstance(class_, str):
            tokens = self.layer.tokens or ()
            if class_ not in tokens:
                raise KeyError(f"the layer has no class {class_!r}")
            class_ = tokens.index(class_)
        if int(class_) not in self._position:
            raise KeyError(f"class {class_} is not among the {len(self)} scanned classes")
        return self.findings[self._position[int(class_)]]

    def to_dict(self) -> dict[str, Any]:
        """What is found as plain JSON: None where the table has NaN or an infinity."""
        table = self.table.replace([np.nan, np.inf, -np.inf], None)
        return {
            "classes": self.layer.classes,
            "features": self.features.to_json(),
            "counts": self.counts,
            "verdicts": table.to_dict("records"),
            **({"head": self.head.to_json()} if self.head else {}),
        }

    def to_parquet(self, path: str | Path) -> None:
        """Write the table, with the tokens as they are; ValueError if pyarrow is not installed."""
        try:
            self.table.to_parquet(path, index=False)
        except ImportError as error:
            needs = "to_parquet needs the package pyarrow: pip install pyarrow."
            raise ValueError(needs) from error

    def plot(self, ax: Any = None) -> Any:
        """Draw the certified margin of each class, in order, on matplotlib axes (a new figure's by
        default): below zero those that can never win. ValueError if matplotlib is not installed.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ValueError("plot needs matplotlib: pip install matplotlib.") from error
        from softgeom.card import COLOURS

        ax = ax if ax is not None else plt.subplots()[1]
        ordered = sorted(self.findings, key=lambda finding: finding.margin)
        for verdict, count in self.counts.items():
            ranks = [n for n, finding in enumerate(ordered) if finding.verdict == verdict]
            margins = [ordered[n].margin for n in ranks]
            if ranks:
                colour = COLOURS[verdict][0]
                ax.scatter(ranks, margins, s=8, color=colour, label=f"{verdict} ({count:,})")
        ax.set_yscale("symlog", linthresh=1e-6)
        ax.axhline(0, color="0.7", linewidth=0.8, zorder=0)
        ax.set(xlabel="classes in order", ylabel="certified margin")
        ax.set_title(self.features.describe())
        ax.legend()
        return ax

    @property
    def table(self) -> pd.DataFrame:
        """One row per class: class, token, verdict, method, steps, margin, radius, and where some
        proofs need less than this feature set, holds.

        * margin: certified lower bound on the witness's margin; certified upper bound (<= 0) on the
          best margin of an unargmaxable class; 0 for a tied one.
        * radius: certified lower bound on ``min_i margin_i / ||w_t - w_i||`` at the witness; NaN
          without one.
        * holds: of an unargmaxable class, where that is proven: "for any features", or every
          set in which it is, such as "up to 100".
        """
        return verdict_table(self.layer, self.features, self.findings, self._parts)

    @property
    def _parts(self) -> list[tuple[FeatureSet, Sequence[Finding]]]:
        return [(part.features, part.findings) for part in self.wider]

    @property
    def counts(self) -> dict[str, int]:
        """Number of classes of each verdict."""
        return count_verdicts(self.findings)

    def evidence(self, index: int) -> Evidence:
        """The evidence for a class. ValueError if the class was not scanned."""
        if int(index) not in self._position:
            raise ValueError(f"Class {index} is not among the {len(self)} scanned classes.")
        return self.findings[self._position[int(index)]].evidence

    def ceiling(self, index: int) -> float:
        """A probability that the class never exceeds, by its blocking classes alone; 1 where it has
        none.

        ``1 / (1 + exp A)`` of ``ceilings/bound.py``: no solver, valid, and often far above the
        least ceiling, since blocking classes are chosen for their margin. It is of the model's own
        probability, as far as ``head`` knows it. ValueError where that is of another kind.
        """
        evidence, certifier = self.evidence(index), self._certifier
        if certifier.readout.probability == "softmax" and isinstance(evidence, Twin):
            return 0.5  # the same logit wherever it is
        if not isinstance(evidence, BlockingClasses):
            return 1.0
        weights = evidence.weights
        if weights.dtype == object:  # a fraction may be beyond every float
            weights = weights / max(weights)
        weights = weights.astype(np.float64)
        held = weights > 0
        return certifier.blocking_ceiling(index, evidence.rivals[held], weights[held])

    @property
    def readout(self) -> Readout:
        """What stands between the layer's scores and the model's answer."""
        return PLAIN if self.head is None else self.head.readout

    @property
    def bounds_probabilities(self) -> bool:
        """Whether `ceiling` can bound what the model gives as a probability."""
        return self.readout.probability in ("softmax", "sigmoid")

    @cached_property
    def _certifier(self) -> Certifier:
        return Certifier(self.layer, self.features, self.readout)

    def verify(self) -> bool:
        """Re-check every verdict, margin and radius from the layer and the evidence alone, without
        a solver; EvidenceError names the first class whose evidence does not prove its verdict.
        """
        verify_parts(self.layer, self.features, self.findings, self._parts)
        return True

    def save(self, path: str | Path) -> None:
        """Write verdicts and evidence to one file, with the layer's fingerprint."""
        save_parts(path, self.layer, [(self.features, self.findings), *self._parts])

    @classmethod
    def load(cls, path: str | Path, layer: SoftmaxLayer) -> Scan:
        """Read what ``save`` wrote, to be verified; ValueError if damaged or of another layer."""
        (features, findings), *more = load_parts(path, layer)
        wider = tuple(cls(layer, others, list(some)) for others, some in more)
        return cls(layer, features, list(findings), wider)
