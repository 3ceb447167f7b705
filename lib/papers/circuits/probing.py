"""Decoding by probes: what a linear map reads from a state, beside what it can learn by heart (002,
"decoding information stored in learned representations").

A probe is ridge regression on one-hot labels: with standardised states Z (N, D) and centred labels
Y (N, C), W = (Z^T Z + p N I)^-1 Z^T Y, and the largest score decides. The *control task* (Hewitt
and Liang 2019) gives each token one random class, drawn as the real classes are distributed, so
that it can be learned by heart only. *Selectivity* is the accuracy on the task minus that on its
control. Whether the model uses what a probe reads is another question: project the directions of W
out of the states and run on (Elazar et al. 2021).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class LinearProbe:
    """Scores (x - mean) W + shares of C classes."""

    mean: Tensor  # (D)
    W: Tensor  # (D, C)
    shares: Tensor  # (C), how often each class was seen

    def predict(self, states: Tensor) -> Tensor:
        """Classes (...) of states (..., D)."""
        return ((states.to(self.W.dtype) - self.mean) @ self.W + self.shares).argmax(-1)

    def directions(self) -> Tensor:
        """An orthonormal basis of what the scores depend on, (D, r), r at most C - 1."""
        U, sizes, _ = torch.linalg.svd(self.W, full_matrices=False)
        return U[:, sizes > 1e-10 * sizes.max()]


def fit_probe(
    states: Tensor, labels: Tensor, classes: int, penalty: float = 0.1
) -> list[LinearProbe]:
    """Probes of states (N, D), one for each row of labels (S, N) in 0..classes-1, in float64."""
    X = states.double()
    mean, spread = X.mean(0), X.std(0, correction=0).clamp(min=1e-12)
    Z = (X - mean) / spread
    Y = F.one_hot(labels, classes).double()  # (S, N, C)
    shares = Y.mean(1)
    gram = Z.T @ Z + penalty * len(Z) * torch.eye(Z.shape[1], dtype=torch.float64)
    W = torch.cholesky_solve(Z.T @ (Y - shares[:, None]).transpose(0, 1).flatten(1),
                             torch.linalg.cholesky(gram))  # fmt: skip
    W = W.view(-1, len(Y), classes) / spread[:, None, None]  # (D, S, C)
    return [LinearProbe(mean, W[:, s], shares[s]) for s in range(len(Y))]


def control_task(tokens: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Labels (N) of the control task: each token has the label of one random place."""
    kinds, which = tokens.unique(return_inverse=True)
    drawn = torch.randint(len(labels), (len(kinds),), generator=generator)
    return labels[drawn][which]


def without(states: Tensor, mean: Tensor, directions: Tensor) -> Tensor:
    """States (..., D) with the mean's component along orthonormal directions (D, r)."""
    basis, middle = directions.to(states.dtype), mean.to(states.dtype)
    return states - (states - middle) @ basis @ basis.T
