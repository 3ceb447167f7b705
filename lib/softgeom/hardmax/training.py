"""Training the sentiment classifier: cross-entropy to labels or, distilled, to the probabilities of a teacher.

Source 004, "Training and results", trains for 100 epochs through softmax attention at temperature 0.001. Here the argmax is held fixed in the
gradient, Adam's learning rate falls linearly to 0, a fixed alpha may be approached from below, and words may be left out at random. N reviews, targets (N,) in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from softgeom.hardmax.reviews import Bags
from softgeom.hardmax.sentiment import Classifier, Recipe, accuracy, logits, polarity_start, random_start, tensors

DECODER_RATE = (
    10.0  # how many times faster the decoder learns: means of tokens are small, so its weights must grow large
)


def fit(
    model: Classifier,
    bags: Bags,
    targets: np.ndarray,
    *,
    after_epoch: Callable[[int, Classifier, float], None] | None = None,
) -> Classifier:
    """Minimise the cross-entropy between `targets` (N,) in [0, 1] and sigmoid(logits); labels and teacher probabilities alike.

    Adam with a learning rate that falls linearly to 0, batches of reviews of similar length, everything drawn from the recipe's seed.
    `after_epoch(epoch, model, loss)` is called after each epoch. Returns the model, trained in place.
    """
    recipe = model.recipe
    if len(bags) != len(targets):
        raise ValueError(f"{len(bags)} reviews but {len(targets)} targets.")
    if bags.empty.any():
        raise ValueError(f"{int(bags.empty.sum())} reviews hold no known word: drop them before training.")
    if np.isin(targets, (0, 1)).all() and len(np.unique(targets)) < 2:
        raise ValueError("All training targets are equal: data sorted by label? Shuffle before taking a part.")
    generator = np.random.default_rng(recipe.seed)
    update = _adam({model.embedding: 1.0, model.log_step: 1.0, model.w: DECODER_RATE, model.v: DECODER_RATE})
    steps = recipe.epochs * -(-len(bags) // recipe.batch)
    goals = torch.tensor(targets, dtype=model.embedding.dtype)  # a copy: workers see read-only memory maps
    done = 0
    for epoch in range(recipe.epochs):
        total = 0.0
        for rows in _batches(bags, recipe.batch, generator):
            _anneal(model, done / steps)
            words, counts = tensors(_thinned(bags[rows], recipe.word_dropout, generator), slice(None), model)
            loss = F.binary_cross_entropy_with_logits(model(words, counts), goals[rows])
            loss.backward()
            update(recipe.learning_rate * (1 - done / steps))
            total += loss.item() * len(rows)
            done += 1
        if after_epoch is not None:
            after_epoch(epoch, model, total / len(bags))
    return model


@dataclass(frozen=True)
class Trained:
    """A trained model as arrays, fit for a file, and its learning curve."""

    recipe: Recipe
    embedding: np.ndarray  # (W, d)
    w: np.ndarray  # (d,)
    v: float
    alpha: float
    curve: list[tuple[int, float, float]]  # epoch, training loss, accuracy on the held-out reviews (NaN without any)

    def model(self) -> Classifier:
        """The classifier again."""
        restored = Classifier(torch.from_numpy(self.embedding), replace(self.recipe, alpha=self.alpha, anneal_from=0.0))
        with torch.no_grad():
            restored.w.copy_(torch.from_numpy(self.w))
            restored.v.fill_(self.v)
        return restored


def train(
    recipe: Recipe,
    bags: Bags,
    targets: np.ndarray,
    size: int,
    polarity: np.ndarray | None = None,
    held_out: tuple[Bags, np.ndarray] | None = None,
) -> Trained:
    """Build the recipe's start over `size` words (from the words' `polarity` (W,), if it asks for that), fit, return arrays."""
    if recipe.start == "polarity":
        if polarity is None:
            raise ValueError("A polarity start needs a weight for each word: pass `polarity`.")
        embedding = polarity_start(polarity, recipe)
    elif recipe.start == "random":
        embedding = random_start(size, recipe)
    else:
        raise ValueError(f"Unknown start {recipe.start!r}: choose random or polarity.")
    curve: list[tuple[int, float, float]] = []

    def note(epoch: int, model: Classifier, loss: float) -> None:
        score = accuracy(logits(model, held_out[0]), held_out[1]) if held_out else float("nan")
        curve.append((epoch + 1, loss, score))

    model = fit(Classifier(embedding, recipe), bags, targets, after_epoch=note)
    arrays = model.embedding.detach().numpy(), model.w.detach().numpy()
    return Trained(recipe, *arrays, model.v.item(), model.alpha.item(), curve)


def _anneal(model: Classifier, progress: float) -> None:
    """Set a fixed alpha on its way from `anneal_from`, geometrically.

    At alpha = 1 a follower's own embedding reaches the decoder with weight (1 + alpha)^-8 = .004: it learns next to nothing. A small alpha lets every
    word learn first, and the clusters form later.
    """
    recipe = model.recipe
    if recipe.anneal_from > 0 and not recipe.train_alpha:
        share = min(1.0, progress / 0.6)
        value = recipe.anneal_from ** (1 - share) * recipe.alpha**share
        model.log_step.data.fill_(float(np.log(value - recipe.floor)))


def _batches(bags: Bags, size: int, generator: np.random.Generator) -> list[np.ndarray]:
    """A random partition into batches of similar lengths: rows are shuffled, then sorted by length within pools of 16 batches."""
    lengths = (bags.counts > 0).sum(1)
    order = generator.permutation(len(bags))
    batches = []
    for start in range(0, len(order), 16 * size):
        pool = order[start : start + 16 * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [batches[i] for i in generator.permutation(len(batches))]


def _thinned(bags: Bags, share: float, generator: np.random.Generator) -> Bags:
    """The reviews with a random share of their words left out, so that no review is learnt by heart."""
    return bags.without(generator.random(bags.counts.shape) < share) if share > 0 else bags


def _adam(
    rates: dict[nn.Parameter, float], memory: float = 0.9, memory_of_squares: float = 0.999
) -> Callable[[float], None]:
    """Adam (Kingma and Ba 2015) for the trainable parameters, each with a factor on the learning rate; returns update(learning_rate).

    torch.optim would do the same, but its first use imports PyTorch's compiler, which takes longer than an epoch here.
    """
    moments = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in rates if p.requires_grad}
    steps = 0

    @torch.no_grad()
    def update(learning_rate: float) -> None:
        nonlocal steps
        steps += 1
        for p, (mean, square) in moments.items():
            if p.grad is None:  # log_step when there is no layer
                continue
            mean.lerp_(p.grad, 1 - memory)
            square.mul_(memory_of_squares).addcmul_(p.grad, p.grad, value=1 - memory_of_squares)
            scale = (square / (1 - memory_of_squares**steps)).sqrt_().add_(1e-8)
            p.addcdiv_(mean, scale, value=-learning_rate * rates[p] / (1 - memory**steps))
            p.grad = None

    return update
