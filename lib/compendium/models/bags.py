"""The simplest language model with a softmax bottleneck, small enough to train over many seeds
(notebook 14).

    x = sum_j E_j[token_j],   y = W x + b,        E (context, C, d),  W (C, d),  b (C,).

All that stands between the preceding tokens and the logits is d numbers. A student learns the
distribution of a teacher instead of the next token.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from softgeom.layer import SoftmaxLayer


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: Adam with a learning rate that falls to zero."""

    context: int  # tokens before the predicted one that the model sees
    steps: int
    batch: int  # predictions a step
    learning_rate: float
    weight_decay: float = 0.0


class BagModel(torch.nn.Module):
    """One embedding for each preceding token and position, summed, and a softmax layer."""

    def __init__(self, classes: int, dimension: int, context: int, generator: torch.Generator):
        super().__init__()
        E = torch.randn(context, classes, dimension, generator=generator)
        W = torch.randn(classes, dimension, generator=generator)
        self.E = torch.nn.Parameter(E / np.sqrt(context))
        self.W = torch.nn.Parameter(W / np.sqrt(dimension))
        self.b = torch.nn.Parameter(torch.zeros(classes))

    def forward(self, contexts: torch.Tensor) -> torch.Tensor:
        """Logits (n, C) of contexts (n, context)."""
        x = self.E[torch.arange(contexts.shape[1]), contexts].sum(dim=1)  # (n, d)
        return x @ self.W.T + self.b

    def layer(self, tokens: tuple[str, ...] | None = None) -> SoftmaxLayer:
        """The softmax layer, as a scan takes it."""
        return SoftmaxLayer(self.W.detach().numpy(), self.b.detach().numpy(), tokens)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(part.numel() for part in self.parameters())


def draw_windows(
    tokens: NDArray[np.integer], context: int, size: int, generator: torch.Generator
) -> torch.Tensor:
    """Random windows (size, context + 1) of tokens: the context, and what follows it."""
    start = torch.randint(0, len(tokens) - context, (size,), generator=generator)
    return torch.as_tensor(tokens, dtype=torch.long)[start[:, None] + torch.arange(context + 1)]


def train_bag(
    tokens: NDArray[np.integer],
    classes: int,
    dimension: int,
    recipe: Recipe,
    seed: int,
    teacher: BagModel | None = None,
) -> BagModel:
    """Train on a text; with a teacher, on its distributions over the same windows."""
    generator = torch.Generator().manual_seed(seed)
    model = BagModel(classes, dimension, recipe.context, generator)
    optimiser = torch.optim.Adam(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / recipe.steps)
    for _ in range(recipe.steps):
        windows = draw_windows(tokens, recipe.context, recipe.batch, generator)
        target = windows[:, -1]
        if teacher is not None:
            with torch.no_grad():
                target = teacher(windows[:, :-1]).softmax(dim=1)
        loss = torch.nn.functional.cross_entropy(model(windows[:, :-1]), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model


def losses(model: BagModel, windows: torch.Tensor) -> NDArray[np.float64]:
    """Nats (n,) that the model loses on the last token of each window."""
    with torch.no_grad():
        logits, last = model(windows[:, :-1]), windows[:, -1]
        return torch.nn.functional.cross_entropy(logits, last, reduction="none").double().numpy()
