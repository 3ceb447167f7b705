"""What somebody writes who has the library alone: mypy reads it strictly, a test runs it."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, assert_type

import numpy as np
import pandas as pd

import softgeom as sg

W: list[list[float]] = [[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]]
frame = pd.DataFrame(W, index=["north", "east", "west", "middle"])
found = sg.scan(frame, features="ball", bound=10, n_jobs=1)
lost: list[int] = [t for t in found if found[t].verdict == "unargmaxable"]
margin: float = found["middle"].margin
part: sg.Scan = found[:2]
table: pd.DataFrame = found.table
never: list[str] = table["token"][table["verdict"] == "unargmaxable"].tolist()
bounds: sg.Ceilings = sg.ceilings(frame, ["middle"], bound=1.0)
said: list[str] = [a.verdict for a in sg.ask(frame, order=["middle", "north"]).answers]
experts: int = sg.ask(frame, experts=2).k
labels: sg.Answers = sg.scan(W, rule="threshold")  # each label by itself
smaller, cut = sg.prune(np.asarray(W, float), results=None, bound=10)
mended: sg.SoftmaxLayer = sg.repair(frame, method="bias")
print(sg.explain(frame, "middle"))


@dataclass(frozen=True, eq=False)
class Sphere(sg.Ball):
    """A set of one's own."""

    kind: ClassVar[str] = "sphere"

    def describe(self) -> str:
        return f"a sphere of {self.radius:g}"


def read(path: str) -> None:
    """A file may decide each label by itself, unless a rule says what is asked."""
    assert_type(sg.scan(path), sg.Scan | sg.Answers)
    assert_type(sg.scan(path, rule="argmax"), sg.Scan)


watch = sg.watch(frame, features=Sphere(10.0), log=None)
epoch: sg.Epoch = watch(frame / 4)
assert (epoch.lost, len(watch.table)) == ((), 2)
with tempfile.TemporaryDirectory() as place:
    sg.scan(frame, out=Path(place, "found"))
    again = sg.verify(Path(place, "found"), frame)
    assert sg.read_verdicts(Path(place, "found"))["token"].tolist() == table["token"].tolist()
sg.scann(frame)  # type: ignore[attr-defined]
sg.scan(frame, jobs="2")  # type: ignore[call-overload]
