"""Do leaders explain the classifier's decisions? Leaders, clusters and influence of reviews, and
tests by deletion.

Source 004 reads the model through its leaders: the ones farthest from the decision line "convey
sentiment". An explanation is faithful when the decision depends on what it names. So reviews are
changed (leaders deleted, leaders alone, leaders reflected at the decision line) and decisions
compared, always against words of the same number chosen otherwise. Everything is measured under the
hard dynamics; leaders and limits in double precision.

Symbols: N reviews of at most n distinct words; the model's logit is <w, mean z^K> + v.
"""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from papers.extras import naming_the_extra
from papers.hardmax import dynamics
from papers.hardmax.leaders import clusters
from papers.hardmax.leaders import leaders as leaders_of
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Classifier, accuracy, logits, tensors
from papers.hardmax.training import Trained

with naming_the_extra():
    import torch
    import torch.nn.functional as F

CHUNK = 512  # reviews at a time


@dataclass(frozen=True)
class Anatomy:
    """What happens inside the model on each review; arrays (N, n) are aligned with `Bags.words`."""

    leader: np.ndarray  # (N, n) leader at some layer 0, ..., K
    at_start: np.ndarray  # (N, n) leader already at layer 0
    # (N, n) <w, z^0> + v: signed distance of the word's embedding from the decision line, times |w|
    height: np.ndarray
    end: np.ndarray  # (N, n) the same after the last layer: which side the token has been drawn to
    # (N, n) share of the mean that stems from each embedding: logit = sum_j influence_j <w, z_j^0>
    # + v
    influence: np.ndarray

    @property
    def count(self) -> np.ndarray:
        """Leaders of each review, (N,)."""
        return self.leader.sum(1)


def in_double(model: Classifier) -> Classifier:
    """A copy of the model in double precision under the hard dynamics."""
    twin = copy.deepcopy(model).double()
    twin.recipe = replace(model.recipe, attention="hard")
    return twin.requires_grad_(False)


def dissect(model: Classifier, bags: Bags) -> Anatomy:
    """Leaders, ends and influence of every word of every review.

    With all argmax sets fixed the layers are linear in the embeddings, and all coordinates are
    averaged alike: the gradient of the logit with respect to z_j^0 is influence_j w. So one
    backward pass gives the influence exactly; it sums to 1 over a review.
    """
    twin = in_double(model)
    shape = bags.words.shape
    parts = {name: np.zeros(shape) for name in ("leader", "at_start", "height", "end", "influence")}
    for rows in _chunks(bags):
        words, counts = tensors(bags, rows, twin)
        Z = F.embedding(words, twin.embedding).requires_grad_(True)
        states = twin.states(Z, counts)
        (slope,) = torch.autograd.grad(twin.read(states[-1], counts).sum(), Z)
        with torch.no_grad():
            led = torch.stack([leaders_of(state, twin.A, counts=counts) for state in states])
            found = {
                "leader": led.any(0),
                "at_start": led[0],
                "height": states[0] @ twin.w + twin.v,
                "end": states[-1] @ twin.w + twin.v,
                "influence": slope @ twin.w / (twin.w @ twin.w),
            }
        for name, values in found.items():
            parts[name][rows, : values.shape[1]] = values.detach().numpy()
    leader, at_start = parts.pop("leader") > 0, parts.pop("at_start") > 0
    return Anatomy(leader, at_start, **parts)


def measure(
    trained: Trained, bags: Bags, labels: np.ndarray, sample: int = 1000
) -> dict[str, float]:
    """One row of an accuracy table: accuracy from all reviews; leaders, clusters and the distance
    to the limit from `sample` reviews spread evenly over the bags.
    """
    model = trained.model()
    part = bags[np.linspace(0, len(bags) - 1, min(sample, len(bags))).astype(int)]
    anatomy, end = dissect(model, part), compare_with_limit(model, part)
    words = (part.counts > 0).sum()
    return {
        "accuracy": accuracy(logits(model, bags), labels),
        "without_attention": accuracy(logits(model, bags, layers=0), labels),
        "alpha": trained.alpha,
        "leaders": float(anatomy.count.mean()),
        "leaders_at_start": float(anatomy.at_start.sum() / max(anatomy.leader.sum(), 1)),
        "leader_share": float(anatomy.leader.sum() / words),
        "clusters": end.clusters,
        "distance_to_limit": end.distance,
        "same_decision_in_limit": end.same_decision,
    }


@dataclass(frozen=True)
class Convergence:
    """How close K layers come to the limit, and into how many clusters the reviews collapse."""

    # mean distance of the tokens from their limits after K layers, relative to that at the start
    distance: float
    same_decision: float  # share of reviews decided alike by K layers and by the limit
    clusters: float  # mean number of limit points of a review
    words: float  # mean number of distinct words of a review
    converged: bool


@torch.no_grad()
def compare_with_limit(model: Classifier, bags: Bags, *, max_layers: int = 3000) -> Convergence:
    """Run reviews on to the limit and compare: the test of "8 layers are enough"."""
    twin = in_double(model)
    start = end = 0.0
    same: list[np.ndarray] = []
    places: list[int] = []
    done = True
    for rows in _chunks(bags):
        words, counts = tensors(bags, rows, twin)
        states = twin.states(F.embedding(words, twin.embedding), counts)
        how: Any = {"settled": 1e-9, "max_layers": max_layers, "check": False}
        final = dynamics.limit(states[0], twin.A, twin.alpha, counts=counts, **how)
        done = done and final.converged
        start += float((counts * (states[0] - final.points).norm(dim=-1)).sum())
        end += float((counts * (states[-1] - final.points).norm(dim=-1)).sum())
        decided, in_limit = (twin.read(Z, counts) > 0 for Z in (states[-1], final.points))
        same.append((decided == in_limit).numpy())
        pairs = zip(final.points.numpy(), counts.numpy(), strict=True)
        places += [int(clusters(Z[c > 0], 1e-6).max()) + 1 for Z, c in pairs]
    distance, alike = end / start if start > 0 else 0.0, float(np.concatenate(same).mean())
    words_of = float((bags.counts > 0).sum(1).mean())
    return Convergence(distance, alike, float(np.mean(places)), words_of, done)


def choose(scores: np.ndarray, number: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mark the `number` (N,) words of largest score (N, n) in each review: booleans (N, n)."""
    order = np.argsort(np.where(counts > 0, -scores, np.inf), axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None, :].repeat(len(order), 0), axis=1)
    return (rank < number[:, None]) & (counts > 0)


@torch.no_grad()
def reflected_logits(model: Classifier, bags: Bags, marked: np.ndarray) -> np.ndarray:
    """Logits (N,) with the marked words mirrored at the decision line <w, z> + v = 0."""
    twin = in_double(model)
    out = np.empty(len(bags))
    for rows in _chunks(bags):
        words, counts = tensors(bags, rows, twin)
        Z = F.embedding(words, twin.embedding)
        mirrored = Z - 2 * ((Z @ twin.w + twin.v) / (twin.w @ twin.w))[..., None] * twin.w
        Z = torch.where(torch.from_numpy(marked[rows, : Z.shape[1]])[..., None], mirrored, Z)
        out[rows] = twin.read(twin.states(Z, counts)[-1], counts).numpy()
    return out


def kept_decisions(model: Classifier, before: np.ndarray, changed: Bags) -> float:
    """Share of reviews decided as `before` (logits) after the change."""
    return float(((logits(in_double(model), changed) > 0) == (before > 0)).mean())


def _chunks(bags: Bags) -> list[np.ndarray]:
    """Row numbers in chunks of reviews of similar length."""
    order = np.argsort((bags.counts > 0).sum(1), kind="stable")
    return [order[start : start + CHUNK] for start in range(0, len(order), CHUNK)]


def probe_explanation(
    model: Classifier, bags: Bags, anatomy: Anatomy, polarity: np.ndarray, seed: int = 0
) -> list[dict[str, float | str]]:
    """Change N reviews at the leaders that `dissect` found, and at as many other words: the share
    of decisions kept when these words are deleted, when they are all that is left, and when they
    are reflected.

    A row for each choice of words: leaders, random ones, those of the largest |polarity|, the
    bag-of-words weights (W,), and those of the largest |influence * height|.
    """
    number, counts = anatomy.count, bags.counts
    moved = np.abs(anatomy.influence * anatomy.height)
    choices = {
        "leaders": anatomy.leader,
        "random words": choose(np.random.default_rng(seed).random(counts.shape), number, counts),
        "bag-of-words words": choose(np.abs(polarity)[bags.words] * counts, number, counts),
        "most influential words": choose(moved, number, counts),
    }
    before = logits(in_double(model), bags)
    rows: list[dict[str, float | str]] = []
    for name, marked in choices.items():
        reflected = (reflected_logits(model, bags, marked) > 0) == (before > 0)
        row: dict[str, float | str] = {
            "words": name,
            "deleted": kept_decisions(model, before, bags.without(marked)),
            "alone": kept_decisions(model, before, bags.without(~marked)),
            "reflected": float(reflected.mean()),
            "changed_words": float(marked.sum(1).mean()),
        }
        rows.append(row)
    return rows
