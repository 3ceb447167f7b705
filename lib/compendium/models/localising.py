"""What notebook 33 asks of a model: which tokens and which components a prediction rests on, what a
probe reads from the stream, and whether the model uses it. Each measurement has its placebo.

A large model takes minutes for each, so `measured` keeps the tables, by the model's unembedding.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import pandas as pd
import torch
from torch import Tensor

from compendium import paths
from compendium.cache import Cache
from compendium.models.subjects import Subject, load_known, load_subjects
from papers import circuits
from papers.circuits import Anatomy

_CHUNK = 8  # windows in memory at a time


@cache
def opened(name: str, profile: str) -> tuple[Subject, Anatomy, str]:
    """A released model by name, or the largest small one where it cannot be had: as it reads and in
    parts, and why it is not the one asked for.
    """
    known, reason = load_known(name) if name else (None, "none is asked for")
    subject = known or load_subjects(profile)[0][-1]
    anatomy = circuits.dissect(subject.model, subject.name, subject.model.W_E.dtype, check=False)
    return subject, anatomy, reason


def measured(what: str, name: str, profile: str, *arguments: object) -> pd.DataFrame:
    """One of `inputs`, `components`, `probes` and `usage` on `opened(name, profile)`, kept. Tensors
    among the arguments are compared by their values.
    """
    kept = Cache(paths.processed_dir() / "localising", _CODE)
    weights = opened(name, profile)[1].W_U.numpy()
    plain = [a.numpy() if isinstance(a, Tensor) else a for a in arguments]
    return kept.keep(_measure, what, name, profile, weights, *plain, label=what)


def inputs(
    anatomy: Anatomy, tokens: Tensor, points: int, parts: tuple[float, ...], draws: int, seed: int
) -> pd.DataFrame:
    """One row a way of ranking the tokens, a prompt and a part of the tokens: nats that the model's
    own first choice loses without the part that is ranked first (`lost`). The row of part 0 holds
    the `scores` of the prompt's tokens instead, and for integrated gradients the `gap` of
    completeness relative to f(x) - f(x0). The first token, the start, always stays.
    """
    x = anatomy.embed(tokens)
    choice = anatomy.unembed(circuits.run_from(anatomy, 0, x)[:, -1]).argmax(-1)
    readout = circuits.logit_gap(anatomy, choice)
    x0 = circuits.blank(anatomy, x)
    before, nothing = (readout(circuits.run_from(anatomy, 0, at)) for at in (x, x0))
    ranked = {
        "integrated gradients": circuits.integrated_gradients(anatomy, x, x0, readout, points),
        "gradient times input": circuits.gradient_times_input(anatomy, x, x0, readout),
        "occlusion": circuits.occlusion(anatomy, x, x0, readout),
        "attention": circuits.attention_from(anatomy, tokens),
        "nearest": torch.arange(tokens.shape[1]).expand(tokens.shape).double(),
    }
    gap = (ranked["integrated gradients"].sum(1) / (before - nothing) - 1).abs()
    generator = torch.Generator().manual_seed(seed)
    chance = [torch.rand(tokens.shape, generator=generator) for _ in range(draws)]
    rows = []
    for name, scores in [*ranked.items(), *(("random", of) for of in chance)]:
        if name != "random":
            pairs = zip(scores.tolist(), gap.tolist(), strict=True)
            rows += [(name, n, 0.0, 0.0, s, g) for n, (s, g) in enumerate(pairs)]
        order = 1 + scores[:, 1:].argsort(dim=1, descending=True)
        for part in parts:
            gone = circuits.take_out(x, x0, order[:, : round(part * order.shape[1])])
            lost = before - readout(circuits.run_from(anatomy, 0, gone))
            rows += [(name, n, part, nats, None, None) for n, nats in enumerate(lost.tolist())]
    return pd.DataFrame(rows, columns=["ranking", "prompt", "part", "lost", "scores", "gap"])


def components(anatomy: Anatomy, tokens: Tensor, right: Tensor, seed: int) -> pd.DataFrame:
    """One row a layer: what the right token's logit above the mean of all loses without its heads
    and without its network (the mean over the prompts in their place), and, as a placebo, by a
    change of the network's write by the same length in a random direction; nats, mean over prompts.
    """
    readout = circuits.logit_gap(anatomy, right)
    with torch.no_grad():
        streams, mixed = circuits.mixed_values(anatomy, tokens)
        writes = circuits.network_writes(anatomy, streams, mixed)
    generator = torch.Generator().manual_seed(seed)
    mean, moved = circuits.mean_donor(writes), []
    for write, middle in zip(writes, mean, strict=True):
        drawn = torch.randn(write.shape, generator=generator, dtype=write.dtype)
        length = (middle - write).norm(dim=-1, keepdim=True)
        moved.append(write + length * drawn / drawn.norm(dim=-1, keepdim=True))
    heads = circuits.effects_of_attention(anatomy, tokens, circuits.mean_donor(mixed), readout)
    columns = {"heads": heads}
    for name, donor in (("network", mean), ("placebo", moved)):
        columns[name] = circuits.effects_of_networks(anatomy, tokens, donor, readout)
    costs = {name: -of.mean(1).double().numpy() for name, of in columns.items()}
    return pd.DataFrame({"layer": range(len(heads)), **costs})


def probes(
    anatomy: Anatomy, windows: Tensor, kinds: Tensor, depths: tuple[int, ...], draws: int, seed: int
) -> pd.DataFrame:
    """One row a token asked for (`read`, `before`), depth, draw (0 is the task, the others are
    control tasks) and window of the second half: the accuracy of a probe fitted on the first half.
    `kinds` (V) holds the class of each token. The share of the commonest class is `majority`.
    """
    read = _streams(anatomy, windows, depths)
    rows, half, classes = [], len(windows) // 2, int(kinds.max()) + 1
    for asked, labels in _tasks(windows, kinds, draws, seed).items():
        majority = float(labels[0].flatten().bincount().max()) / labels[0].numel()
        for depth, states in zip(depths, read, strict=True):
            fitted = circuits.fit_probe(
                states[:half, 1:].flatten(0, 1), labels[:, :half].flatten(1), classes
            )
            for draw, (probe, right) in enumerate(zip(fitted, labels, strict=True)):
                hits = probe.predict(states[half:, 1:]) == right[half:]
                shares = hits.double().mean(1).tolist()
                rows += [(asked, depth, draw, n, share, majority) for n, share in enumerate(shares)]
    columns = ["asked", "depth", "draw", "window", "accuracy", "majority"]
    return pd.DataFrame(rows, columns=columns)


def usage(
    anatomy: Anatomy, windows: Tensor, kinds: Tensor, depth: int, tested: int, draws: int, seed: int
) -> pd.DataFrame:
    """One row a set of directions (`probe`, `control`, `random`), draw and window: how much the
    loss on the next token rises without them at a depth, nats. Directions are those that the probes
    of the class of the token before were fitted to on the first half of the windows; the loss is
    measured on the first `tested` of the others.
    """
    (streams,) = _streams(anatomy, windows, (depth,))
    half, classes = len(windows) // 2, int(kinds.max()) + 1
    labels = _tasks(windows, kinds, draws, seed)["before"]
    states = streams[:half, 1:].flatten(0, 1)
    fitted = circuits.fit_probe(states, labels[:, :half].flatten(1), classes)
    sets = [("control" if n else "probe", n, probe.directions()) for n, probe in enumerate(fitted)]
    generator, width = torch.Generator().manual_seed(seed), sets[0][2].shape
    for n in range(1, draws + 1):
        drawn = torch.randn(width, generator=generator, dtype=torch.float64)
        sets.append(("random", n, torch.linalg.qr(drawn).Q))
    read, x = windows[half : half + tested], streams[half : half + tested]
    loss = partial(_losses, anatomy, read, depth)
    before, rows = loss(x), []
    for name, draw, basis in sets:
        rises = loss(circuits.without(x, fitted[0].mean, basis)) - before
        rows += [(name, draw, n, rise) for n, rise in enumerate(rises.tolist())]
    return pd.DataFrame(rows, columns=["directions", "draw", "window", "rise"])


MEASURES: dict[str, Callable[..., pd.DataFrame]] = {
    of.__name__: of for of in (inputs, components, probes, usage)
}
_PARTS = "anatomy attribution patching probing".split()
_CODE = (*(f"papers/circuits/{p}.py" for p in _PARTS), "compendium/models/localising.py")


def _measure(
    what: str, name: str, profile: str, _weights: object, *arguments: object
) -> pd.DataFrame:
    given = [torch.from_numpy(a) if hasattr(a, "dtype") else a for a in arguments]
    return MEASURES[what](opened(name, profile)[1], *given)


@torch.no_grad()
def _streams(anatomy: Anatomy, windows: Tensor, depths: tuple[int, ...]) -> list[Tensor]:
    """The stream before the block of each depth, (N, T, D)."""
    x, done, found = anatomy.embed(windows), 0, []
    for depth in depths:  # from the lowest to the highest, and no block behind it
        between = replace(anatomy, blocks=anatomy.blocks[done:depth])
        x = torch.cat([circuits.run_from(between, 0, part) for part in x.split(_CHUNK)])
        done = depth
        found.append(x)
    return found


def _tasks(windows: Tensor, kinds: Tensor, draws: int, seed: int) -> dict[str, Tensor]:
    """Labels (1 + draws, N, T - 1) of all but the first position: the class of the token read or of
    the one before, then control tasks.
    """
    generator, found = torch.Generator().manual_seed(seed), {}
    for asked, tokens in (("read", windows[:, 1:]), ("before", windows[:, :-1])):
        labels, flat = kinds[tokens], tokens.flatten()
        control = [circuits.control_task(flat, kinds[flat], generator) for _ in range(draws)]
        found[asked] = torch.stack([labels, *(of.view(tokens.shape) for of in control)])
    return found


@torch.no_grad()
def _losses(anatomy: Anatomy, windows: Tensor, depth: int, x: Tensor) -> Tensor:
    """Mean loss of each window, nats a token, when the stream at a depth is x."""
    losses = []
    for part, read in zip(x.split(_CHUNK), windows.split(_CHUNK), strict=True):
        logits = anatomy.unembed(circuits.run_from(anatomy, depth, part))
        losses.append(-circuits.token_log_probabilities(logits, read).mean(1))
    return torch.cat(losses)
