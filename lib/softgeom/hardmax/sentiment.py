"""The sentiment classifier: embedding, K hardmax layers, mean over tokens, linear decoder.

Source 004, "Computational contribution" (d = 2, K = 8, A = identity):

    y = sigmoid( <w, mean_i z_i^K> + v ),   z_i^0 = E[word i],   the mean weighted by the words' counts.

Trained by the cross-entropy to labels or, distilled, to the probabilities of a teacher. The gradient holds each argmax fixed, the exact
derivative almost everywhere; `attention="softmax"` trains the source authors' surrogate at a temperature instead. Symbols: B reviews of at
most n distinct words, W words in the vocabulary, E (W, d), w (d,), v and alpha > 0 scalars.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgeom.hardmax.dynamics import hardmax_step, softmax_step
from softgeom.hardmax.reviews import Bags

TRAINING_TIES = 1e-6  # relative tie tolerance in single precision: a few units of rounding
DECODER_RATE = (
    10.0  # the decoder learns this many times faster: means of tokens are small, so its weights must grow large
)


@dataclass(frozen=True)
class Recipe:
    """How one classifier is built and trained; flat, so that a table can show it."""

    dimension: int = 2
    layers: int = 8
    alpha: float = 1.0  # fixed value, or the initial one when trained
    train_alpha: bool = False
    anneal_from: float = 0.0  # when positive, a fixed alpha is approached from here during the first 60 % of the steps
    floor: float = 0.0  # alpha = floor + exp(parameter) stays above it
    attention: str = "hard"  # "hard", or "softmax" for the surrogate
    temperature: float = 1e-3  # of the surrogate
    start: str = "random"  # "random", or "polarity"
    scale: float = 0.1  # standard deviation of the random start
    spread: float = 0.15  # of the polarity start: norms are 1 + spread |t|
    epochs: int = 3
    batch: int = 256
    learning_rate: float = 0.01
    seed: int = 0


class Classifier(nn.Module):
    """y = <w, mean z^K> + v on bags of words; `forward` returns logits."""

    def __init__(self, embedding: Tensor, recipe: Recipe):
        super().__init__()
        if recipe.alpha <= recipe.floor:
            raise ValueError(
                f"alpha = {recipe.alpha} must lie above its floor {recipe.floor}, which must not be negative."
            )
        d = embedding.shape[1]
        self.recipe = recipe
        self.embedding = nn.Parameter(embedding.clone())
        self.w = nn.Parameter(torch.zeros(d, dtype=embedding.dtype))
        self.v = nn.Parameter(torch.zeros((), dtype=embedding.dtype))
        step = torch.tensor(float(np.log(recipe.alpha - recipe.floor)), dtype=embedding.dtype)
        self.log_step = nn.Parameter(step, requires_grad=recipe.train_alpha)
        self.register_buffer("A", torch.eye(d, dtype=embedding.dtype))

    @property
    def alpha(self) -> Tensor:
        return self.recipe.floor + self.log_step.exp()

    def layer(self, Z: Tensor, counts: Tensor) -> Tensor:
        """One attention layer, (B, n, d) to (B, n, d)."""
        if self.recipe.attention == "softmax":
            return softmax_step(Z, self.A, self.alpha, self.recipe.temperature, counts=counts)
        tol = TRAINING_TIES if Z.dtype == torch.float32 else 1e-12
        return hardmax_step(Z, self.A, self.alpha, counts=counts, tol=tol, check=False)

    def read(self, Z: Tensor, counts: Tensor) -> Tensor:
        """The decoder: logits (B,) from the final tokens (B, n, d)."""
        mean = (counts[..., None] * Z).sum(-2) / counts.sum(-1)[..., None]
        return mean @ self.w + self.v

    def states(self, Z: Tensor, counts: Tensor, layers: int | None = None) -> list[Tensor]:
        """The tokens (B, n, d) before, between and after the layers."""
        states = [Z]
        for _ in range(self.recipe.layers if layers is None else layers):
            states.append(self.layer(states[-1], counts))
        return states

    def forward(self, words: Tensor, counts: Tensor, layers: int | None = None) -> Tensor:
        return self.read(self.states(F.embedding(words, self.embedding), counts, layers)[-1], counts)


def random_start(size: int, recipe: Recipe) -> Tensor:
    """Normal embeddings (W, d) of standard deviation `scale`: nothing about the words is built in."""
    generator = torch.Generator().manual_seed(recipe.seed)
    return recipe.scale * torch.randn(size, recipe.dimension, generator=generator)


def polarity_start(weights: np.ndarray, recipe: Recipe) -> Tensor:
    """Embeddings (W, d) on an arc that orders the words by their bag-of-words weight.

    In the plane z = r (sin t, cos t) with t the weight over three standard deviations, clipped to +-pi/2, and r = 1 + spread |t|: the polar words
    are longer, so they lead. Further dimensions are small noise. What such a model's leaders say about sentiment is built in.
    """
    t = torch.as_tensor(np.clip(weights / (3 * weights.std()), -1, 1) * (np.pi / 2), dtype=torch.float32)
    r = 1 + recipe.spread * t.abs()
    generator = torch.Generator().manual_seed(recipe.seed)
    Z = 0.05 * torch.randn(len(weights), recipe.dimension, generator=generator)
    Z[:, 0] += r * torch.sin(t)
    Z[:, 1] += r * torch.cos(t)
    return Z


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
    goals = torch.as_tensor(targets, dtype=model.embedding.dtype)
    done = 0
    for epoch in range(recipe.epochs):
        total = 0.0
        for rows in _batches(bags, recipe.batch, generator):
            _anneal(model, done / steps)
            words, counts = tensors(bags, rows, model)
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
            raise ValueError("A polarity start needs the words' bag-of-words weights: pass `polarity`.")
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


@torch.no_grad()
def logits(
    model: Classifier, bags: Bags, *, layers: int | None = None, hard: bool = True, chunk: int = 1024
) -> np.ndarray:
    """Logits (N,) of all reviews under the hard dynamics (or, with hard=False, under the attention that the model was trained with).

    `layers` replaces the model's depth: 0 switches attention off.
    """
    trained = model.recipe
    if hard:
        model.recipe = replace(trained, attention="hard")
    out = torch.empty(len(bags), dtype=model.embedding.dtype)
    try:
        order = np.argsort((bags.counts > 0).sum(1), kind="stable")
        for start in range(0, len(order), chunk):
            rows = order[start : start + chunk]
            out[rows] = model(*tensors(bags, rows, model), layers=layers)
    finally:
        model.recipe = trained
    return out.numpy()


def in_softmax(model: Classifier, temperature: float) -> Classifier:
    """A copy of the model whose attention is softmax at a temperature: the surrogate on the same weights."""
    twin = copy.deepcopy(model)
    twin.recipe = replace(model.recipe, attention="softmax", temperature=temperature)
    return twin


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Share of reviews whose logit has the sign of their label."""
    return float(((scores > 0) == (labels == 1)).mean())


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


def tensors(bags: Bags, rows: np.ndarray | slice, model: Classifier) -> tuple[Tensor, Tensor]:
    """Words and counts of some reviews, cut to the longest of them."""
    width = int((bags.counts[rows] > 0).sum(1).max())
    # Parallel workers see large arrays as read-only memory maps: indexing by rows copies, np.asarray drops the subclass.
    counts = torch.from_numpy(np.asarray(bags.counts[rows, :width])).to(model.embedding.dtype)
    return torch.from_numpy(np.asarray(bags.words[rows, :width])), counts


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
