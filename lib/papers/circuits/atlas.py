"""An atlas of heads: what each does on repeated random tokens, what it copies, and which heads read
which.

Random tokens, read twice, leave a head nothing to go by but positions and repetition (Elhage et al.
2021; Olsson et al. 2022). With a start token, n random ones, and the same n again, the weight that
a head gives from position i

    to i - 1      is its previous-token score (all positions),
    to i - n      its duplicate-token score   (second half),
    to i - n + 1  its induction score         (second half): the token that followed last time,

each a mean over positions and texts; a head that spreads its attention evenly has the mean of 1 /
(i + 1). Composition asks, of weights alone, how much of what head 1 writes is read by head 2 (row
states, W_OV1 = W_V W_O first):

    |W_OV1 X|_F / (|W_OV1|_F |X|_F),   X = W_QK2 (queries), W_QK2^T (keys), W_OV2 (values),

about 1 / sqrt(D) for matrices that have nothing to do with each other.
"""

import pandas as pd
import torch
from torch import Tensor

from papers.circuits.anatomy import Anatomy, walk

READERS = ("queries", "keys", "values")


def repeated_tokens(
    vocabulary: int, texts: int, length: int, generator: torch.Generator, start: int | None = None
) -> Tensor:
    """Random tokens read twice, (texts, [1 +] 2 length), after the start token where there is one;
    no token occurs twice in a half. ValueError if the vocabulary is smaller than a half.
    """
    if length > vocabulary:
        raise ValueError(
            f"{length} different tokens cannot be drawn from a vocabulary of {vocabulary}: "
            "take a shorter text."
        )
    drawn = [torch.randperm(vocabulary, generator=generator)[:length] for _ in range(texts)]
    half = torch.stack(drawn)
    first = half.new_full((texts, 0 if start is None else 1), start or 0)
    return torch.cat((first, half, half), dim=1)


def head_scores(anatomy: Anatomy, tokens: Tensor, length: int) -> pd.DataFrame:
    """Scores of every head on `repeated_tokens` (B, T), whose last 2 `length` are a text and its
    repetition: layer, head, previous, duplicate, induction, first (weight on the first position,
    where many heads rest), and even: the induction score of attention spread evenly.
    """
    T = tokens.shape[1]
    text, again = tokens[:, -2 * length : T - length], tokens[:, -length:]
    if 2 * length > T or not torch.equal(text, again):
        raise ValueError(
            f"the last {2 * length} tokens are not a text of {length} and its repetition: use "
            "repeated_tokens."
        )
    second = torch.arange(T - length, T)
    even = float((1 / (second + 1)).mean())
    rows = []
    for depth, layer in enumerate(walk(anatomy, tokens)):
        pattern = layer.pattern  # (B, H, T, T)
        scores = {
            "previous": pattern[..., torch.arange(1, T), torch.arange(T - 1)],
            "duplicate": pattern[..., second, second - length],
            "induction": pattern[..., second, second - length + 1],
            "first": pattern[..., 1:, 0],
        }
        means = {name: weights.mean((0, -1)).tolist() for name, weights in scores.items()}
        rows += [
            {"layer": depth, "head": head} | {name: of[head] for name, of in means.items()}
            for head in range(pattern.shape[1])
        ]
    return pd.DataFrame(rows).assign(even=even)


def copying_scores(folded: Anatomy) -> Tensor:
    """Sum of eigenvalues of W_E W_OV W_U^T over the sum of their moduli, for every head of a folded
    anatomy: (L, H) in [-1, 1], from the (K, K) matrices W_O (W_U^T W_E) W_V.
    """
    folded.check_folded()
    G = folded.W_U.T @ folded.W_E  # (D, D)
    eigenvalues = torch.stack(
        [torch.linalg.eigvals(block.W_O @ G @ block.W_V) for block in folded.blocks]
    )
    return eigenvalues.sum(-1).real / eigenvalues.abs().sum(-1)


def composition_scores(folded: Anatomy) -> dict[str, Tensor]:
    """How much each head reads of what each earlier one writes, by `"queries"`, `"keys"` and
    `"values"`: (L, H, L, H), writer first, zero where it does not come earlier. The anatomy is from
    `fold_norms`, so that gains are in the matrices; rotary positions are left out (offset zero).
    """
    folded.check_folded()
    L, (H, _, K) = len(folded.blocks), folded.blocks[0].W_Q.shape
    scores = {reader: folded.W_E.new_zeros(L, H, L, H) for reader in READERS}
    # of the earlier heads: W_O (H K, D), R of W_V = Q R (H, K, K), |W_OV|_F (H)
    written: list[Tensor] = []
    left: list[Tensor] = []
    sizes: list[Tensor] = []
    for depth, block in enumerate(folded.blocks):
        R = {side: torch.linalg.qr(getattr(block, f"W_{side}")).R for side in "QKV"}
        R_O = torch.linalg.qr(block.W_O.mT).R
        own = (R["V"] @ R_O.mT).flatten(1).norm(dim=1)
        scored = (R["Q"] @ R["K"].mT).flatten(1).norm(dim=1)
        if depth:
            earlier, R_V, size = torch.cat(written), torch.cat(left), torch.cat(sizes)
            rights = (R["K"], scored), (R["Q"], scored), (R_O, own)
            readers = zip((block.W_Q, block.W_K, block.W_V), rights, strict=True)
            for reader, (W, (right, norm)) in zip(READERS, readers, strict=True):
                # |W_V1 W_O1 W R^T|_F without the orthogonal factors of W_V1 and of the right end
                middle = (earlier @ W.transpose(0, 1).flatten(1)).view(-1, K, H, K)
                product = R_V[:, None] @ middle.permute(0, 2, 1, 3) @ right.mT  # (N, H, K, K)
                score = product.flatten(2).norm(dim=2) / (size[:, None] * norm)
                scores[reader][:depth, :, depth] = score.view(depth, H, H)
        written.append(block.W_O.flatten(0, 1))
        left.append(R["V"])
        sizes.append(own)
    return scores
