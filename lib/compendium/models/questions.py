"""The material of notebook 19: a pronouncing model under a mask, label sets, passages as an index,
routers, rankings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compendium.corpora.text import python_reference
from softgeom.bottleneck.asking import (
    Answers,
    Order,
    Prison,
    ask,
    ask_experts,
    ask_label_sets,
    ask_rankings,
    ask_together,
    find_prison,
    fourier_layer,
    make_index,
    never_first,
)
from softgeom.bottleneck.scan_result import Scan
from softgeom.checkpoints.packages import fetch_members
from softgeom.checkpoints.plain_pickle import read_plain_pickle
from softgeom.checkpoints.released import G2PM_READINGS, RELEASED
from softgeom.layer import Ball, SoftmaxLayer, Unbounded
from softgeom.source import Source

WORDS = 30  # plain words that a passage has at least: grammars and tables have few


def polyphones() -> dict[str, list[str]]:
    """Chinese characters with several readings, as g2pM's own dictionary lists them."""
    (path,) = fetch_members(RELEASED["g2pm"].wheel, [G2PM_READINGS])
    return {c: list(r) for c, r in read_plain_pickle(path).items() if len(c) == 1 and len(r) > 1}


def lost_readings(found: Scan, readings: dict[str, list[str]]) -> tuple[pd.DataFrame, Answers]:
    """Readings that can never win among all outputs, asked again among their character's own:
    character, reading, masked; the answers.
    """
    tokens = found.layer.tokens or ()
    place = {token: i for i, token in enumerate(tokens)}
    lost = {f.index for f in found.findings if f.evidence.verdict == "unargmaxable"}
    rows, orders = [], []
    for character, listed in sorted(readings.items()):
        own = [place[reading] for reading in listed if reading in place]
        for i in own if len(own) > 1 else []:
            if i in lost:
                rows.append({"character": character, "reading": tokens[i], "rivals": len(own) - 1})
                orders.append(Order([[i], [j for j in own if j != i]]))
    answers = ask(found.layer, orders, features=found.features)
    table = pd.DataFrame(rows, columns=["character", "reading", "rivals"])
    return table.assign(masked=[answer.verdict for answer in answers.answers]), answers


def prisons(found: Scan, count: int, seed: int) -> list[Prison]:
    """Minimal prisons of a sample of the captives of a scan."""
    captives = [f.index for f in found.findings if f.evidence.verdict == "unargmaxable"]
    rng = np.random.default_rng(seed)
    drawn: list[int] = (
        rng.choice(captives, min(count, len(captives)), replace=False).tolist() if captives else []
    )
    several = (find_prison(found.layer, t, features=found.features) for t in sorted(drawn))
    return [prison for prison in several if prison is not None]


def sparse_sets(
    labels: int, k: int, sizes: Iterable[int], count: int, seed: int
) -> tuple[pd.DataFrame, list[Answers]]:
    """Random sets of labels, asked of four layers: layer, numbers (a label), size, asked and
    verdicts; the answers.

    A Gaussian layer; unit rows with a negative bias, so that labels are off by default; the Fourier
    layer, all three with 2 k + 1 numbers a label; and the Fourier layer with two columns of slack.
    Features are unbounded.
    """
    rng = np.random.default_rng(seed)
    d = 2 * k + 1
    gaussian, unit = rng.normal(size=(labels, d)), rng.normal(size=(labels, d - 1))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    slack = rng.normal(size=(labels, 2)) / np.sqrt(labels)
    layers = {
        "random": SoftmaxLayer(gaussian / np.sqrt(d)),
        "random, with a bias": SoftmaxLayer(unit, -np.ones(labels)),
        "Fourier": fourier_layer(labels, k),
        "Fourier and slack": fourier_layer(labels, k, slack),
    }
    sets = {
        size: [rng.choice(labels, size, replace=False).tolist() for _ in range(count)]
        for size in sizes
    }
    rows, every = [], []
    for name, layer in layers.items():
        numbers = layer.dimension + (layer.b is not None)
        for size, some in sets.items():
            every.append(ask_label_sets(layer, some, features=Unbounded()))
            row = {"layer": name, "numbers": numbers, "size": size, "asked": len(some)}
            rows.append(row | every[-1].counts)
    return pd.DataFrame(rows), every


def reference() -> Source:
    """The Python language reference as a text in its own right: it comes with Python and stands in
    for nothing.
    """
    return replace(python_reference().source, kind="package")


def passages(most: int) -> tuple[list[str], list[str]]:
    """Paragraphs of the Python language reference, the longest of each topic first in line: names
    (topic and number), texts.
    """
    from pydoc_data.topics import topics

    listed: list[tuple[int, str, str]] = []
    seen: set[tuple[str, ...]] = set()  # topics quote each other
    for topic in sorted(topics):
        blocks = {block.strip(): tuple(_words(block)) for block in topics[topic].split("\n\n")}
        new = [b for b, words in blocks.items() if len(words) >= WORDS and words not in seen]
        seen.update(blocks[block] for block in new)
        longest = sorted(new, key=len, reverse=True)
        listed += [(n, topic, block) for n, block in enumerate(longest)]
    listed.sort(key=lambda entry: entry[:2])
    chosen = sorted(listed[:most], key=lambda entry: (entry[1], entry[0]))
    return [f"{topic} {n + 1}" for n, topic, _ in chosen], [text for *_, text in chosen]


def latent_index(
    names: Sequence[str], texts: Sequence[str], dimension: int, *, unit: bool
) -> SoftmaxLayer:
    """Latent semantic indexing (Deerwester et al. 1990): words weighted by rarity, the leading
    singular vectors, scaled by their values.
    """
    words = [Counter(_words(text)) for text in texts]
    known = Counter(word for bag in words for word in bag)
    repeated = sorted(word for word, count in known.items() if count > 1)
    column = {word: n for n, word in enumerate(repeated)}
    A = np.zeros((len(texts), len(column)))
    for n, bag in enumerate(words):
        for word, count in bag.items():
            if word in column:
                A[n, column[word]] = (1 + np.log(count)) * np.log(len(texts) / known[word])
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    # a singular vector has no sign of its own
    signs = np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])])
    rows = (U * signs * s)[:, :dimension]
    return make_index(rows / np.linalg.norm(rows, axis=1, keepdims=True) if unit else rows, names)


def _words(text: str) -> list[str]:
    return [word for word in text.lower().split() if word.isalpha()]


def retrievable(
    names: Sequence[str], texts: Sequence[str], dimensions: Iterable[int], pairs: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, bool]:
    """Documents never first (inner products) and pairs never together (unit vectors), by dimension;
    examples; whether all was verified.
    """
    every = list(combinations(range(len(names)), 2))
    drawn = np.random.default_rng(seed).permutation(every)[:pairs].tolist()
    rows, examples, verified = [], [], True
    for d in dimensions:
        first = never_first(latent_index(names, texts, d, unit=False))
        together = ask_together(latent_index(names, texts, d, unit=True), drawn)
        verified = verified and first.verify() and together.verify()
        rows.append(
            {
                "dimension": d,
                "documents": len(names),
                "never first": first.counts["unargmaxable"],
                "pairs": len(together),
                "never together": together.counts["impossible"],
                "undecided": first.counts["undecided"] + together.counts["undecided"],
            }
        )
        for answer in (a for a in together.answers if a.verdict == "impossible"):
            pair = " and ".join(names[i] for i in answer.order.blocks[0])
            examples.append((d, pair, answer.margin))
    told = pd.DataFrame(examples, columns=["dimension", "pair", "margin"])
    return pd.DataFrame(rows), told, verified


def random_routers(
    experts: int, dimensions: Iterable[int], chosen: Iterable[int], routers: int, seed: int
) -> tuple[pd.DataFrame, bool]:
    """Gaussian routers: experts that can never be among the top k, by features and k; whether all
    was verified.
    """
    rng = np.random.default_rng(seed)
    rows, verified = [], True
    for d in dimensions:
        layers = [SoftmaxLayer(rng.normal(size=(experts, d)) / np.sqrt(d)) for _ in range(routers)]
        for k in chosen:
            found = [ask_experts(layer, k, features=Ball(1.0)) for layer in layers]
            verified = verified and all(router.verify() for router in found)
            counts = pd.DataFrame([router.counts for router in found]).sum().astype(int).to_dict()
            rows.append({"features": d, "k": k, "experts": experts * routers} | counts)
    return pd.DataFrame(rows), verified


def top_rankings(
    found: Scan, lengths: Iterable[int], count: int, seed: int
) -> tuple[pd.DataFrame, list[Answers]]:
    """Random rankings of classes that can each win: k, asked, possible, impossible, undecided; the
    answers.
    """
    winners = np.array([f.index for f in found.findings if f.evidence.verdict == "argmaxable"])
    rng = np.random.default_rng(seed)
    rows, every = [], []
    for k in lengths:
        drawn: list[list[int]] = [
            rng.choice(winners, k, replace=False).tolist() for _ in range(count)
        ]
        answers = ask_rankings(found.layer, drawn, features=found.features)
        rows.append({"k": k, "asked": len(answers), **answers.counts})
        every.append(answers)
    return pd.DataFrame(rows), every


def best_of_mixtures(found: Scan, mixtures: int, components: int, seed: int) -> NDArray[np.float64]:
    """The largest lead that any captive of a scan has over its best rival in each of so many random
    mixtures of softmaxes (n,).

    Features as small as the captives need to come close: components are drawn in the scan's box at
    scales from 1 to 1/1000.
    """
    from softgeom.bottleneck.asking import mixture

    lost = np.array([f.evidence.verdict == "unargmaxable" for f in found.findings])
    low, high = found.features.bounds(found.layer.dimension)
    rng = np.random.default_rng(seed)
    leads = []
    for _ in range(mixtures):
        scale = 10.0 ** rng.uniform(-3, 0, (components, 1))
        X = rng.uniform(low, high, (components, found.layer.dimension)) * scale
        p = mixture(found.layer, X, rng.dirichlet(np.ones(components)))
        leads.append(p[lost].max() - p[~lost].max())
    return np.array(leads)
