"""The sentiment classifier: embedding, K hardmax layers, mean over tokens, linear decoder.

Source 004, "Computational contribution" (d = 2, K = 8, A = identity):

    y = sigmoid( <w, mean_i z_i^K> + v ),   z_i^0 = E[word i],
    the mean weighted by the words' counts.

Each argmax is held fixed in the gradient, the exact derivative almost everywhere;
`attention="softmax"` is the source authors' surrogate at a temperature instead. Symbols: B reviews
of at most n distinct words, W words in the vocabulary, E (W, d), w (d,), v and alpha > 0 scalars.
"""

import copy
import importlib
import importlib.util
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from papers.extras import naming_the_extra
from papers.hardmax.dynamics import TIE_TOLERANCE, hardmax_step, softmax_step
from papers.hardmax.reviews import Bags

with naming_the_extra():
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

TRAINING_TIES = 1e-6  # relative tie tolerance in single precision: a few units of rounding


@dataclass(frozen=True)
class Recipe:
    """How one classifier is built and trained; flat, so that a table can show it."""

    dimension: int = 2
    layers: int = 8
    alpha: float = 1.0  # fixed value, or the initial one when trained
    train_alpha: bool = False
    # train alpha itself, as the source's code does, instead of its logarithm; it may then become
    # negative
    plain_alpha: bool = False
    # when positive, a fixed alpha is approached from here during the first 60 % of the steps
    anneal_from: float = 0.0
    attention: str = "hard"  # "hard", or "softmax" for the surrogate
    temperature: float = 1e-3  # of the surrogate
    start: str = "random"  # "random", or "polarity"
    scale: float = 0.1  # standard deviation of the random start
    spread: float = 0.05  # of the polarity start: norms are 1 + spread |t|
    # or "uniform": w and v from U(-1/sqrt(d), 1/sqrt(d)), as PyTorch's linear layers
    decoder_start: str = "zero"
    word_dropout: float = 0.0  # share of a review's distinct words left out at random in each step
    epochs: int = 3
    batch: int = 256
    learning_rate: float = 0.01
    falling: bool = True  # the learning rate falls linearly to 0, or stays
    # how many times faster the decoder learns: means of tokens are small, so its weights must grow
    # large
    decoder_rate: float = 10.0
    clip: float = 0.0  # largest norm of a step's gradient, longer ones are shortened; 0: any
    # batches are cut from pools of so many, sorted by length: less padding; 1 draws them plainly at
    # random
    pool: int = 16
    seed: int = 0


class Classifier(nn.Module):
    """y = <w, mean z^K> + v on bags of words; `forward` returns logits."""

    def __init__(self, embedding: Tensor, recipe: Recipe):
        super().__init__()
        if recipe.alpha <= 0 and not recipe.plain_alpha:
            raise ValueError(f"alpha must be positive, got {recipe.alpha}.")
        d = embedding.shape[1]
        self.recipe = recipe
        self.embedding = nn.Parameter(embedding.clone())
        self.w = nn.Parameter(torch.zeros(d, dtype=embedding.dtype))
        self.v = nn.Parameter(torch.zeros((), dtype=embedding.dtype))
        step = torch.tensor(_step_of(recipe.alpha, recipe), dtype=embedding.dtype)
        self.step = nn.Parameter(step, requires_grad=recipe.train_alpha)
        self.register_buffer("A", torch.eye(d, dtype=embedding.dtype))
        if recipe.decoder_start == "uniform":
            self._draw_decoder()

    @property
    def alpha(self) -> Tensor:
        return self.step if self.recipe.plain_alpha else self.step.exp()

    @torch.no_grad()
    def set_alpha(self, value: float) -> None:
        self.step.fill_(_step_of(value, self.recipe))

    def slope_of_alpha(self) -> float:
        """Derivative of alpha in the parameter that is trained."""
        return 1.0 if self.recipe.plain_alpha else self.alpha.item()

    @torch.no_grad()
    def _draw_decoder(self) -> None:
        generator = torch.Generator().manual_seed(self.recipe.seed + 1)
        reach = len(self.w) ** -0.5
        self.w.uniform_(-reach, reach, generator=generator)
        self.v.uniform_(-reach, reach, generator=generator)

    def layer(self, Z: Tensor, counts: Tensor) -> Tensor:
        """One attention layer, (B, n, d) to (B, n, d)."""
        if self.recipe.attention == "softmax":
            return softmax_step(Z, self.A, self.alpha, self.recipe.temperature, counts=counts)
        return hardmax_step(Z, self.A, self.alpha, counts=counts, tol=_tol(Z), check=False)

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
        Z = F.embedding(words, self.embedding)
        return self.read(self.states(Z, counts, layers)[-1], counts)


def _step_of(alpha: float, recipe: Recipe) -> float:
    """The parameter that stands for a step size."""
    return alpha if recipe.plain_alpha else float(np.log(alpha))


def random_start(size: int, recipe: Recipe) -> Tensor:
    """Normal embeddings (W, d) of deviation `scale`: nothing about the words is built in."""
    generator = torch.Generator().manual_seed(recipe.seed)
    return recipe.scale * torch.randn(size, recipe.dimension, generator=generator)


def polarity_start(weights: np.ndarray, recipe: Recipe) -> Tensor:
    """Embeddings (W, d) on an arc that orders the words by a weight, their effect on the logit of a
    bag-of-words model: what the leaders say about sentiment is then built in.

    In the plane z = r (sin t, cos t) with t the weight over two standard deviations, clipped to
    +-pi/2, and r = 1 + spread |t|: the polar words are longer, so they lead. Further dimensions are
    small noise.
    """
    polarity = np.clip(weights / (2 * weights.std()), -1, 1) * (np.pi / 2)
    t = torch.as_tensor(polarity, dtype=torch.float32)
    r = 1 + recipe.spread * t.abs()
    generator = torch.Generator().manual_seed(recipe.seed)
    Z = 0.05 * torch.randn(len(weights), recipe.dimension, generator=generator)
    Z[:, 0] += r * torch.sin(t)
    Z[:, 1] += r * torch.cos(t)
    return Z


@torch.no_grad()
def logits(
    model: Classifier, bags: Bags, *, layers: int | None = None, hard: bool = True, chunk: int = 256
) -> np.ndarray:
    """Logits (N,) of all reviews under the hard dynamics, or with hard=False under the attention
    that the model was trained with; `layers` replaces its depth, and 0 switches attention off.
    """
    trained, depth = model.recipe, model.recipe.layers if layers is None else layers
    if hard and (fused := accelerator()) is not None and model.embedding.device.type == "cpu":
        E = model.embedding.numpy()
        mean = fused.mean_tokens(
            E, model.alpha.item(), np.asarray(bags.words), np.asarray(bags.counts), depth, _tol(E)
        )
        return mean @ model.w.numpy() + model.v.numpy()
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


def accelerator() -> Any:
    """The module `fused`, or None where numba is not installed."""
    if importlib.util.find_spec("numba") is None:
        return None
    return importlib.import_module("papers.hardmax.fused")


def _tol(Z: Any) -> float:
    """Relative tie tolerance for arrays or tensors of this precision."""
    return TRAINING_TIES if Z.dtype in (torch.float32, np.float32) else TIE_TOLERANCE


def in_softmax(model: Classifier, temperature: float) -> Classifier:
    """A copy with softmax attention at a temperature: the surrogate on the same weights."""
    twin = copy.deepcopy(model)
    twin.recipe = replace(model.recipe, attention="softmax", temperature=temperature)
    return twin


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Share of reviews whose logit has the sign of their label."""
    return float(((scores > 0) == (labels == 1)).mean())


def tensors(bags: Bags, rows: np.ndarray | slice, model: Classifier) -> tuple[Tensor, Tensor]:
    """Words and counts of some reviews, cut to the longest of them."""
    width = int((bags.counts[rows] > 0).sum(1).max())
    # Parallel workers see large arrays as read-only memory maps: indexing by rows copies,
    # np.asarray drops the subclass.
    counts = torch.from_numpy(np.asarray(bags.counts[rows, :width])).to(model.embedding.dtype)
    return torch.from_numpy(np.asarray(bags.words[rows, :width])), counts
