"""Rankings: which ordered top k of all classes can a layer produce? (paper 001, Section 2.2, asked
of one layer.)

The ranking ``t_1, ..., t_k`` is possible when at some x ``y_{t_1} > ... > y_{t_k} >`` every other
logit. It is a sharper question than whether t_1 can win, and than the order of the k among
themselves:

* *Among themselves* k <= d + 1 classes with affinely independent rows take each of their k! orders,
  over unbounded features and without a bias over every ball: the differences of consecutive rows
  are independent, so that they take any signs. For k > d + 1 some order is always missing
  (count_regions(k, d) < k!).
* *Above all others* already k = 2 can fail: t_2 must be the first of the layer without t_1. Every
  pair that a beam search, a top-k sampler or a reranker could ever see is such a ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from softgeom.bottleneck.asking.ask import Answers, ask
from softgeom.bottleneck.asking.candidates import BOX
from softgeom.bottleneck.certifying.order import Order
from softgeom.bottleneck.names import Names
from softgeom.layer import FeatureSet, SoftmaxLayer


def ask_rankings(
    layer: SoftmaxLayer,
    rankings: Iterable[Sequence[int | str]],
    *,
    features: FeatureSet = BOX,
    n_jobs: int = 1,
    progress: bool = False,
) -> Answers:
    """For each ranking, k classes by number or token, best first, whether it can be the top k of
    all classes; options are those of ``ask``. ValueError if a ranking is empty, or names a class
    twice or one that does not exist.
    """
    names = Names(layer)
    ranked = (names.find_all(ranking, "a ranking") for ranking in rankings)
    orders = [Order([[i] for i in classes], rest=True) for classes in ranked]
    return ask(layer, orders, features=features, n_jobs=n_jobs, progress=progress)
