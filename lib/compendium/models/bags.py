"""The simplest language models with a softmax bottleneck, small enough to train over many seeds
(notebook 14). All that stands between what was read and the logits y is d numbers x.

    y = W x + b,                  W (C, d),  b (C,),
    x = sum_j E_j[token_j],       E (context, C, d): of the preceding tokens, or
    x = P s,                      P (d, D): of a released model's state s, which stays as it is.

A student learns the distribution of a teacher instead of the next token.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

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


class Bottleneck(torch.nn.Module):
    """A softmax layer on d features; what they are made of, a subclass says."""

    def start(self, classes: int, dimension: int, generator: torch.Generator) -> None:
        """Draw the layer as it is before training."""
        W = torch.randn(classes, dimension, generator=generator)
        self.W = torch.nn.Parameter(W / np.sqrt(dimension))
        self.b = torch.nn.Parameter(torch.zeros(classes))

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """x (n, d) of the inputs."""
        raise NotImplementedError

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits (n, C) of the inputs."""
        return self.features(inputs) @ self.W.T + self.b

    def layer(self, tokens: tuple[str, ...] | None = None) -> SoftmaxLayer:
        """The softmax layer, as a scan takes it."""
        return SoftmaxLayer(self.W.detach().numpy(), self.b.detach().numpy(), tokens)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(part.numel() for part in self.parameters())


class BagModel(Bottleneck):
    """One embedding for each preceding token and position, summed, and a softmax layer."""

    def __init__(self, classes: int, dimension: int, context: int, generator: torch.Generator):
        super().__init__()
        E = torch.randn(context, classes, dimension, generator=generator)
        self.E = torch.nn.Parameter(E / np.sqrt(context))
        self.start(classes, dimension, generator)

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """x (n, d) of contexts (n, context)."""
        return self.E[torch.arange(inputs.shape[1]), inputs].sum(dim=1)


class StateModel(Bottleneck):
    """A projection of a released model's states, and a softmax layer."""

    def __init__(self, classes: int, dimension: int, width: int, generator: torch.Generator):
        super().__init__()
        P = torch.randn(dimension, width, generator=generator)
        self.P = torch.nn.Parameter(P / np.sqrt(width))
        self.start(classes, dimension, generator)

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """x (n, d) of states (n, D)."""
        return inputs @ self.P.T


Pair = tuple[torch.Tensor, torch.Tensor]  # inputs (n, ...) and the classes (n,) that follow them
Model = TypeVar("Model", bound=Bottleneck)


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
    teacher: Bottleneck | None = None,
) -> BagModel:
    """Train on a text; with a teacher, on its distributions over the same windows."""
    generator = torch.Generator().manual_seed(seed)

    def draw() -> Pair:
        windows = draw_windows(tokens, recipe.context, recipe.batch, generator)
        return windows[:, :-1], windows[:, -1]

    return _train(BagModel(classes, dimension, recipe.context, generator), draw, recipe, teacher)


def train_head(
    examples: Pair,
    classes: int,
    dimension: int,
    recipe: Recipe,
    seed: int,
    teacher: Bottleneck | None = None,
) -> StateModel:
    """Train on states (n, D) and what follows them; with a teacher, on its distributions."""
    generator = torch.Generator().manual_seed(seed)
    states, following = examples

    def draw() -> Pair:
        chosen = torch.randint(len(following), (recipe.batch,), generator=generator)
        return states[chosen], following[chosen]

    return _train(StateModel(classes, dimension, states.shape[1], generator), draw, recipe, teacher)


def losses(model: Bottleneck, examples: Pair) -> NDArray[np.float64]:
    """Nats (n,) that the model loses on what follows each input."""
    with torch.no_grad():
        logits = model(examples[0])
        return (
            torch.nn.functional.cross_entropy(logits, examples[1], reduction="none")
            .double()
            .numpy()
        )


def _train(
    model: Model, draw: Callable[[], Pair], recipe: Recipe, teacher: Bottleneck | None
) -> Model:
    optimiser = torch.optim.Adam(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / recipe.steps)
    for _ in range(recipe.steps):
        inputs, target = draw()
        if teacher is not None:
            with torch.no_grad():
                target = teacher(inputs).softmax(dim=1)
        loss = torch.nn.functional.cross_entropy(model(inputs), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model
