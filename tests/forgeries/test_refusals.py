"""Each demand of the two readers is there for a forgery: without it one of the corpus passes."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from collections import defaultdict

import numpy as np
import pytest
from corpus import CORPUS
from honest import files
from verifiers import TOOLS, VERIFIERS, tool

from softgeom.bottleneck.certifying import evidence_file

# What no forgery can show, by the words of the demand: about the user's own layer; what spares
# memory and time alone; what would be refused later by the kernel, or read by another reader
LAYER = ("W or b is misshapen", "W and b alone", "holds no floats", "a NaN or an infinite")
AGAIN = ("no radius", "not finite", "at a point is not", "a bound is none", "twin")
APART = {
    "sceptic": (*LAYER, "may meet the blocking sets"),
    "load": ("where {size} belong", "it holds ", *AGAIN),
}
MINUTES = "fractions: a true fraction of a million digits"  # to reduce


class RefusedAt(BaseException):
    """By the demand on this line."""


@functools.cache
def contents() -> dict[str, bytes]:
    """The forged files."""
    return {name: forgery.content() for name, forgery in CORPUS.items()}


def demands(source: str, name: str) -> dict[int, str]:
    """The calls of that name, by their last lines."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    named = [call for call in calls if getattr(call.func, "id", "") == name]
    return {call.lineno: ast.unparse(call.args[1]) for call in named}


@pytest.mark.parametrize("verifier", ["sceptic", "load"])
def test_without_any_demand_some_forgery_passes(verifier, tmp_path, monkeypatch):
    if verifier == "sceptic":
        module, name = tool("check_evidence"), "demand"
        source = (TOOLS / "check_evidence.py").read_text(encoding="utf-8")
    else:
        module, name = vars(evidence_file), "_require"
        source = inspect.getsource(evidence_file)
    skipped = set()

    def demand(condition, sentence):
        line = sys._getframe(1).f_lineno
        if not condition and line not in skipped:
            raise RefusedAt(line)

    def verify(forgery: str) -> int | str | None:
        """The line of the demand that refuses, a sentence of another kind, or None."""
        try:
            of = CORPUS[forgery].of
            place = tmp_path / of
            place.mkdir(exist_ok=True)
            return VERIFIERS[verifier](contents()[forgery], files()[of], place)
        except RefusedAt as refused:
            return refused.args[0]
        except Exception as error:
            return f"{error!r}"

    monkeypatch.setitem(module, name, demand)
    first = defaultdict(list)
    for forgery in CORPUS:
        first[verify(forgery)].append(forgery)
    idle = []
    for line, sentence in demands(source, name).items():
        skipped = {line}
        passes = any(some == MINUTES or verify(some) is None for some in first[line])
        if not passes and not any(words in sentence for words in APART[verifier]):
            idle.append(f"{line}: {sentence}")
    assert not idle, "\n".join(idle)


W = np.ones((2, 2))


@pytest.mark.parametrize(
    "layer",
    [
        {"W": W.astype(int)},
        {"W": W.astype(np.longdouble)},
        {"W": W * np.nan},
        {"W": W, "b": [0.0, np.inf]},
        {"W": W, "b": [0.0]},
        {"W": W[0]},
        {"W": W[:0]},
        {"W": W, "bias": [0.0, 0.0]},
        {"b": [0.0, 0.0]},
    ],
    ids=repr,
)
def test_the_sceptic_refuses_what_is_no_layer(layer, tmp_path):
    np.savez(tmp_path / "layer.npz", **layer)
    globals_ = tool("check_evidence")
    with pytest.raises(globals_["RefusedError"]):
        globals_["read_layer"](tmp_path / "layer.npz")


def test_the_sceptic_gives_up_on_too_many_experts():
    met, refused = (tool("check_evidence")[name] for name in ("met", "RefusedError"))
    pairs = [set(pair) for pair in itertools.combinations(range(6), 2)]
    assert met(pairs, 5)
    assert not met(pairs, 4)
    with pytest.raises(refused, match="too many experts"):
        met(pairs, 4, iter(range(5)))
    far = [set(range(60 * n, 60 * n + 60)) for n in range(10)]
    assert not met(far, 9, iter(range(1)))  # ten disjoint ones take ten
