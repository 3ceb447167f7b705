"""Training the sentiment classifier: cross-entropy to labels or, distilled, to the probabilities of
a teacher.

Source 004, "Training and results", trains for 100 epochs through softmax attention at temperature
0.001. Here the argmax is held fixed in the gradient, Adam's learning rate falls linearly to 0, a
fixed alpha may be approached from below, and words may be left out at random; a `Recipe` can also
say what the source does. N reviews, targets (N,) in [0, 1].
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from papers.extras import naming_the_extra
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import (
    Classifier,
    Recipe,
    accelerator,
    accuracy,
    logits,
    polarity_start,
    random_start,
    tensors,
)

with naming_the_extra():
    import torch
    import torch.nn.functional as F
    from torch import nn

# words, counts, targets, learning rate -> loss
Step = Callable[[np.ndarray, np.ndarray, np.ndarray, float], float]


def fit(
    model: Classifier,
    bags: Bags,
    targets: np.ndarray,
    *,
    after_epoch: Callable[[int, Classifier, float], bool | None] | None = None,
    compiled: bool | None = None,
) -> Classifier:
    """Minimise the cross-entropy between `targets` (N,) in [0, 1] and sigmoid(logits) with Adam as
    the recipe sets it, everything drawn from its seed; returns the model, trained in place.

    `after_epoch(epoch, model, loss)` ends the training when it returns True. `compiled` says
    whether the steps run in compiled loops (`fused`, which needs numba) or by autograd; by default
    they do where they can, and the two differ by rounding.
    """
    recipe = model.recipe
    if len(bags) != len(targets):
        raise ValueError(f"{len(bags)} reviews but {len(targets)} targets.")
    if bags.empty.any():
        raise ValueError(
            f"{int(bags.empty.sum())} reviews hold no known word: drop them before training."
        )
    if np.isin(targets, (0, 1)).all() and len(np.unique(targets)) < 2:
        raise ValueError(
            "All training targets are equal: data sorted by label? Shuffle before taking a part."
        )
    generator = np.random.default_rng(recipe.seed)
    step = _step(model, compiled)
    steps = recipe.epochs * -(-len(bags) // recipe.batch)
    goals = np.array(targets, dtype=float)  # a copy: workers see read-only memory maps
    done = 0
    for epoch in range(recipe.epochs):
        total = 0.0
        for rows in _batches(bags, recipe.batch, recipe.pool, generator):
            _anneal(model, done / steps)
            part = _thinned(bags[rows], recipe.word_dropout, generator)
            rate = recipe.learning_rate * (1 - done / steps if recipe.falling else 1.0)
            total += step(part.words, part.counts, goals[rows], rate) * len(rows)
            done += 1
        if after_epoch is not None and after_epoch(epoch, model, total / len(bags)):
            break
    return model


def _step(model: Classifier, compiled: bool | None) -> Step:
    """The model's training step, compiled or recorded."""
    fused = accelerator() if compiled is not False else None
    if compiled and fused is None:
        raise ValueError(
            "Compiled training needs numba, which is not installed: pip install 'softgeom[fast]'."
        )
    rate = model.recipe.decoder_rate
    rates: dict[nn.Parameter, float] = {model.embedding: 1.0, model.step: 1.0}
    rates |= {model.w: rate, model.v: rate}
    if fused is not None and model.embedding.device.type == "cpu":
        return fused.FusedStep(model, rates, model.recipe.clip)
    # The parameters that stand still have no gradient, and Adam (Kingma and Ba 2015) passes them.
    groups = [{"params": [p], "factor": factor} for p, factor in rates.items()]
    adam = torch.optim.Adam(groups)

    def recorded(words: np.ndarray, counts: np.ndarray, goals: np.ndarray, rate: float) -> float:
        logits = model(*tensors(Bags(words, counts), slice(None), model))
        goal = torch.as_tensor(goals, dtype=logits.dtype)
        loss = F.binary_cross_entropy_with_logits(logits, goal)
        adam.zero_grad()
        loss.backward()
        if model.recipe.clip > 0:
            nn.utils.clip_grad_norm_(list(rates), model.recipe.clip)
        for group in adam.param_groups:
            group["lr"] = rate * group["factor"]
        adam.step()
        return loss.item()

    return recorded


@dataclass(frozen=True)
class Trained:
    """A trained model as arrays, fit for a file, and its learning curve."""

    recipe: Recipe
    embedding: np.ndarray  # (W, d)
    w: np.ndarray  # (d,)
    v: float
    alpha: float
    # epoch, training loss, accuracy on the held-out reviews (NaN without any)
    curve: list[tuple[int, float, float]]

    def model(self) -> Classifier:
        """The classifier again."""
        restored = Classifier(
            torch.tensor(self.embedding), replace(self.recipe, alpha=self.alpha, anneal_from=0.0)
        )
        with torch.no_grad():
            restored.w.copy_(torch.from_numpy(self.w))
            restored.v.fill_(self.v)
        return restored


def train(
    recipe: Recipe, bags: Bags, targets: np.ndarray, size: int,
    polarity: np.ndarray | None = None, held_out: tuple[Bags, np.ndarray] | None = None,
) -> Trained:  # fmt: skip
    """Build the recipe's start over `size` words (with `polarity` (W,)), fit, return arrays."""
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
    """Set a fixed alpha on its way from `anneal_from`, geometrically: at alpha = 1 a follower's own
    embedding reaches the decoder with weight (1 + alpha)^-8 = .004 and would learn nothing.
    """
    recipe = model.recipe
    if recipe.anneal_from > 0 and not recipe.train_alpha:
        share = min(1.0, progress / 0.6)
        value = recipe.anneal_from ** (1 - share) * recipe.alpha**share
        model.set_alpha(value)


def _batches(bags: Bags, size: int, pool: int, generator: np.random.Generator) -> list[np.ndarray]:
    """A random partition into batches of similar lengths: shuffled, then sorted within pools."""
    lengths = (bags.counts > 0).sum(1)
    order = generator.permutation(len(bags))
    batches = []
    for start in range(0, len(order), pool * size):
        rows = order[start : start + pool * size]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches += [rows[i : i + size] for i in range(0, len(rows), size)]
    return [batches[i] for i in generator.permutation(len(batches))]


def _thinned(bags: Bags, share: float, generator: np.random.Generator) -> Bags:
    """The reviews without a random share of their words: none is learnt by heart."""
    return bags.without(generator.random(bags.counts.shape) < share) if share > 0 else bags
