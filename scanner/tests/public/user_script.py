"""What somebody writes who has the library alone: mypy reads it strictly, a test runs it."""

import numpy as np
import pandas as pd

import softgeom as sg

W: list[list[float]] = [[1, 0], [-1, 1], [-1, -1], [0, 0]]
frame = pd.DataFrame(W, index=["north", "east", "west", "middle"])
found = sg.scan(frame, features="ball", bound=10, n_jobs=1)
assert isinstance(found, sg.Scan)  # a model that decides each label by itself gives Answers
lost: list[int] = [t for t in found if found[t].verdict == "unargmaxable"]
margin: float = found["middle"].margin
part: sg.Scan = found[:2]
table: pd.DataFrame = found.table
bounds: sg.Ceilings = sg.ceilings(frame, ["middle"], bound=1.0)
answers = sg.ask(frame, order=["middle", "north"])
smaller, cut = sg.prune(np.asarray(W, float), results=None, bound=10)
mended: sg.SoftmaxLayer = sg.repair(frame, method="bias")
print(sg.explain(frame, "middle"))
sg.scann(frame)  # type: ignore[attr-defined]
sg.scan(frame, jobs="2")  # type: ignore[call-arg]
