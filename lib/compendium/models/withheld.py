"""Output layers trained without an example of some classes (notebook 17).

A head y = W x + b, W (C, d), is trained by AdamW on examples of the *shown* classes. The *withheld*
classes are outputs too, and never the target. Where does training leave their rows?

*The law.* Row c moves by w_c <- (1 - eta_t lambda) w_c - eta_t u_c, with u_c Adam's step. Let e_c
be w_c less the mean of the withheld rows. Then

    e_c(t + 1) = (1 - eta_t lambda) e_c(t) - eta_t (u_c - mean u).

A withheld class enters the loss through the partition function alone, so that its gradient is the
mean of p_c(x) x. Where the p_c are small these vectors are nearly parallel. Adam divides each by
its own size, all u_c agree, and distances between withheld rows shrink by `predicted_spread`. With
label smoothing the gradient is the mean of (p_c - epsilon / C) x. It vanishes at one row, which is
the same for all withheld classes. So the u_c differ: they pull the rows together without any decay.

*The limit.* With a penalty lambda ||W||^2 / 2 the loss is strictly convex in the head, and it stays
the same when withheld classes are exchanged. So its minimum gives all of them one row, at any
width, and none of them is ever the only winner.

Several seeds are trained side by side, each as if alone: AdamW treats every number by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from softgeom.layer import SoftmaxLayer, Unbounded
from softgeom.scanner import scan

CODE, HIDDEN = 48, 128  # numbers in a code, units of the extractor
NOISE = 0.5  # standard deviation of an example around the code of its class
ZIPF_OFFSET = 2  # the k-th class is shown in proportion to 1 / (k + offset)
MOMENTS = 20  # of a training at which the withheld rows are measured, after its start


Examples = tuple[NDArray[np.float32], NDArray[np.int_]]


@dataclass(frozen=True)
class Task:
    """Examples (n, k) with their classes (n,), for training and held out, and which of the C
    classes are withheld (C,). No held-out example is of a withheld class.
    """

    train: Examples
    held_out: Examples
    withheld: NDArray[np.bool_]


@dataclass(frozen=True)
class Recipe:
    """How a head is trained. A cure leaves width, decay and smoothing as they are."""

    width: int = 16  # features d of an extractor that is trained too; 0: the examples are features
    steps: int = 600
    batch: int = 64  # examples a step
    learning_rate: float = 5e-3  # of AdamW, falling to zero along a line
    decay: float = 0.0  # of AdamW, of all weights
    smoothing: float = 0.0  # probability of a target that is spread over the classes
    bias: bool = True
    soft_cap: float = 0.0  # logits become cap * tanh(logit / cap); 0: as they are
    z_loss: float = 0.0  # weight of the square of log(sum of exponentials)
    decay_to_start: bool = False  # cure: the head decays to its first rows, not to zero
    smooth_shown: bool = False  # cure: smoothing leaves out the withheld classes
    rows: str = "free"  # cure: "one norm" for all rows, or "nearest" with b = -||w||^2 / 2

    def rate(self, step: int) -> float:
        """The learning rate eta_t at a step."""
        return self.learning_rate * (1 - step / self.steps)


@dataclass(frozen=True)
class Outcome:
    """A trained head, and how near its withheld rows have come."""

    layer: SoftmaxLayer
    accuracy: float  # on held-out examples, all of shown classes
    withheld: NDArray[np.bool_]  # (C,)
    spreads: NDArray[np.float64]  # (MOMENTS + 1,) of the withheld rows over time, 1 at the start


class Heads(torch.nn.Module):
    """Extractors and heads of S seeds, side by side."""

    def __init__(self, tasks: Sequence[Task], recipe: Recipe, seeds: Sequence[int]):
        super().__init__()
        self.recipe = recipe
        inputs, classes = tasks[0].train[0].shape[1], len(tasks[0].withheld)
        sizes = [(inputs, HIDDEN), (HIDDEN, recipe.width)] if recipe.width else []
        sizes.append((recipe.width or inputs, classes))
        weights: list[list[Tensor]] = [[] for _ in sizes]
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed)
            for part, (m, n) in zip(weights, sizes, strict=True):
                # as torch.nn.Linear starts
                part.append((2 * torch.rand(n, m, generator=generator) - 1) / np.sqrt(m))
        *extractor, head = (torch.stack(part) for part in weights)  # (S, n, m)
        self.extractor = torch.nn.ParameterList(extractor)
        self.offsets = torch.nn.ParameterList(torch.zeros(len(A), 1, A.shape[1]) for A in extractor)
        self.origin = head if recipe.decay_to_start else torch.zeros_like(head)
        self.change = torch.nn.Parameter(head - self.origin)  # what AdamW lets decay
        self.free_bias = torch.nn.Parameter(torch.zeros(len(head), classes))
        self.length = torch.nn.Parameter(head.norm(dim=2).mean(dim=1)[:, None, None])

    def head(self) -> tuple[Tensor, Tensor]:
        """W (S, C, d) and b (S, C), as they multiply the features."""
        W, rows = self.origin + self.change, self.recipe.rows
        if rows == "one norm":
            W = self.length * W / W.norm(dim=2, keepdim=True)
        if rows == "nearest":
            return W, -W.square().sum(dim=2) / 2
        return W, self.free_bias * float(self.recipe.bias and rows == "free")

    def forward(self, examples: Tensor) -> Tensor:
        """Logits (S, n, C) of examples (S, n, k)."""
        for A, offset in zip(self.extractor, self.offsets, strict=True):
            examples = torch.relu(torch.baddbmm(offset, examples, A.transpose(1, 2)))
        W, b = self.head()
        logits = torch.baddbmm(b[:, None], examples, W.transpose(1, 2))
        cap = self.recipe.soft_cap
        return cap * torch.tanh(logits / cap) if cap else logits


def moments(recipe: Recipe) -> NDArray[np.int_]:
    """The numbers of steps (MOMENTS + 1,) after which rows are measured, from none to all."""
    return np.round(np.linspace(0, recipe.steps, MOMENTS + 1)).astype(int)


def predicted_spreads(recipe: Recipe) -> NDArray[np.float64]:
    """prod_t (1 - eta_t lambda) up to each of the moments (MOMENTS + 1,): what decay alone leaves
    of a distance, about exp(-lambda sum_t eta_t).
    """
    left = np.cumprod([1 - recipe.rate(step) * recipe.decay for step in range(recipe.steps)])
    return np.concatenate([[1.0], left])[moments(recipe)]


def train_heads(tasks: Sequence[Task], recipe: Recipe, seeds: Sequence[int]) -> list[Outcome]:
    """Train one head a task. First rows and the order of the examples come from its seed."""
    heads = Heads(tasks, recipe, seeds)
    spreads = [_spreads(heads, tasks)]
    optimiser = torch.optim.AdamW(heads.parameters(), weight_decay=recipe.decay)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    smoothed = [~t.withheld if recipe.smooth_shown else np.ones(len(t.withheld)) for t in tasks]
    even = torch.tensor(np.array([s / s.sum() for s in smoothed]), dtype=torch.float32)
    parts = [tuple(torch.from_numpy(part) for part in task.train) for task in tasks]
    for step in range(recipe.steps):
        optimiser.param_groups[0]["lr"] = recipe.rate(step)
        drawn = [
            torch.randint(len(y), (recipe.batch,), generator=generator)
            for (_, y), generator in zip(parts, generators, strict=True)
        ]
        examples, targets = (
            torch.stack([part[k][chosen] for part, chosen in zip(parts, drawn, strict=True)])
            for k in (0, 1)
        )
        optimiser.zero_grad()
        _loss(heads(examples), targets, even, recipe).backward()
        optimiser.step()
        if step + 1 in moments(recipe):
            spreads.append(_spreads(heads, tasks))
    path = np.array(spreads) / spreads[0]
    return [_outcome(heads, n, task, path[:, n]) for n, task in enumerate(tasks)]


def examine(tasks: Sequence[Task], recipe: Recipe, seeds: Sequence[int]) -> pd.DataFrame:
    """A row for each seed: how many withheld and how many shown classes can never win, for any
    features, the accuracy on held-out examples of shown classes, and `spreads`.
    """
    rows = []
    for seed, outcome in zip(seeds, train_heads(tasks, recipe, seeds), strict=True):
        never, withheld = never_win(outcome.layer), outcome.withheld
        row = {"seed": seed, "lost": never[withheld].sum(), "shown_lost": never[~withheld].sum()}
        rows.append(row | {"accuracy": outcome.accuracy, "spreads": outcome.spreads})
    return pd.DataFrame(rows)


def never_win(layer: SoftmaxLayer) -> NDArray[np.bool_]:
    """Which classes (C,) are nowhere the only winner; any features are allowed."""
    found = scan(layer, features=Unbounded(), verdicts_only=True)
    return (found.table["verdict"] != "argmaxable").to_numpy()


def code_task(classes: int, withheld: int, examples: int, shown: int, seed: int) -> Task:
    """Noisy random codes (n, 48) in Zipf's proportions, at least one of each shown class, and
    `shown` of each class that is otherwise withheld.
    """
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randn(classes, CODE, generator=generator)
    left_out = withheld_classes(classes, withheld, seed)
    share = 1 / (ZIPF_OFFSET + np.arange(classes - withheld))
    counts = np.full(classes, shown)
    counts[~left_out] = np.maximum(1, np.round(examples * share / share.sum()))

    def draw(counts: NDArray[np.int_]) -> Examples:
        y = np.repeat(np.arange(classes), counts)
        noise = NOISE * torch.randn(len(y), CODE, generator=generator)
        return (codes[y] + noise).numpy(), y

    return Task(draw(counts), draw(np.where(left_out, 0, counts)), left_out)


def feature_task(train: Examples, held_out: Examples, withheld: NDArray[np.bool_]) -> Task:
    """Features of a frozen extractor, without the examples of the withheld classes."""
    shown = ~withheld
    kept = [(X[shown[y]], y[shown[y]]) for X, y in (train, held_out)]
    return Task(kept[0], kept[1], withheld)


def withheld_classes(classes: int, withheld: int, seed: int) -> NDArray[np.bool_]:
    """A random choice (C,) of so many classes."""
    chosen = np.zeros(classes, dtype=bool)
    chosen[np.random.default_rng(seed).choice(classes, withheld, replace=False)] = True
    return chosen


def _loss(logits: Tensor, targets: Tensor, even: Tensor, recipe: Recipe) -> Tensor:
    """The sum over seeds of the cross-entropy, smoothed by `even` (S, C), and of the z-loss."""
    total = logits.logsumexp(dim=2)  # (S, n)
    score = logits.gather(2, targets[:, :, None])[:, :, 0]
    if recipe.smoothing:
        others = torch.einsum("snc,sc->sn", logits, even)
        score = (1 - recipe.smoothing) * score + recipe.smoothing * others
    loss = total - score
    if recipe.z_loss:
        loss = loss + recipe.z_loss * total.square()
    return loss.mean(dim=1).sum()


@torch.no_grad()
def _spreads(heads: Heads, tasks: Sequence[Task]) -> list[float]:
    """Root mean square distance of each seed's withheld rows to their mean."""
    rows = heads.head()[0].double().numpy()
    chosen = (W[task.withheld] for W, task in zip(rows, tasks, strict=True))
    return [float(np.sqrt(W.var(axis=0).sum())) for W in chosen]


@torch.no_grad()
def _outcome(heads: Heads, n: int, task: Task, spreads: NDArray[np.float64]) -> Outcome:
    W, b = (weights[n].numpy().copy() for weights in (w.detach() for w in heads.head()))
    examples, targets = (torch.from_numpy(part) for part in task.held_out)
    # every seed's head reads them, and its own is kept: once a training, so cheap enough
    guesses = heads(examples.expand(len(heads.change), -1, -1))[n].argmax(dim=1)
    accuracy = float((guesses == targets).double().mean())
    return Outcome(SoftmaxLayer(W, b), accuracy, task.withheld, spreads)
