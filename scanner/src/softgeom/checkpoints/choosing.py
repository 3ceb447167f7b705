"""Which matrix of a model is its softmax layer, and which vector its bias: certain, or refused.

A head is certain when

* the caller names it (``weight=``, ``--weight``);
* or the model's own description names it: `config.json` says how the model ends (``architectures``;
  `head_table`), how many classes it has (``id2label``), whether the output is the embedding
  (``tie_word_embeddings``), and exactly one tensor fits;
* or there is no description, and exactly one tensor has the name of a head, is the end of the one
  sequence of layers, or is the only matrix.

Everything else is a ValueError that lists the candidates. A bias is the sibling of its matrix
(`X.weight` and `X.bias`, `kernel` and `bias`, ...) before it is a vector of a family's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from softgeom.checkpoints import head_table as table
from softgeom.checkpoints.description import described, label_count, tie, vocabularies
from softgeom.checkpoints.matrices import (
    Matrix,
    bias_of,
    called,
    candidates,
    canonical,
    known_biases,
    matrix_shape,
    require,
)
from softgeom.checkpoints.tensors import TensorStore, describe, plain

_NUMBERED = re.compile(r"(?:(.*)[./])?(\d+)$")


@dataclass(frozen=True)
class Choice:
    """Names of the tensors of a layer; whether the file holds W as (d, C); a sentence for each
    decision, the first for the matrix; whether the matrix is an input embedding that nothing shows
    to be the output too.
    """

    weight: str
    bias: str | None
    transposed: bool
    why: tuple[str, ...]
    is_embedding: bool = False


def choose(
    store: TensorStore,
    config: Mapping[str, Any],
    weight: str | None = None,
    bias: str | None = None,
    *,
    without_bias: bool = False,
) -> Choice:
    """The layer's tensors: ``weight`` and ``bias`` are what the caller says. ValueError when the
    head is not certain: the candidates are listed with their shapes.
    """
    given = weight is not None
    if weight is not None:
        require(store, weight)
        why = f"{plain(weight)}, as named"
    else:
        head, why = _certain(store, config)
        weight = head.name
    chosen, transposed, reason = bias_of(store, weight, bias, without_bias, given)
    rows, columns = matrix_shape(store, weight) or (0, 0)
    if not transposed and given and rows < columns:
        reason = (
            *reason,
            f"fewer classes ({rows}) than features ({columns}): is the matrix stored transposed?",
        )
    embedding = called(canonical(weight), table.EMBEDDINGS) and "tied" not in why
    return Choice(weight, chosen, transposed, (why, *reason), embedding)


def _certain(store: TensorStore, config: Mapping[str, Any]) -> tuple[Matrix, str]:
    """The head and why it is that one."""
    there = candidates(store)
    architecture, ends = described(config)
    for family, facts, why in table.REFUSED_FAMILIES:
        if config.get("model_type") == family and facts.items() <= config.items():
            raise _refused(store, f"the layer that runs is not stored ({why})", there)
    if ends == table.NOTHING:
        _refuse_coded(store, table.LANGUAGE_HEADS)
        raise _refused(store, f"{architecture} ends with no layer over classes", there)
    if ends is None:
        return _undescribed(store, config, there, architecture)
    heads = table.HEADS[ends]
    _refuse_coded(store, heads)
    if ends == table.CLASSES:
        return _classifier(store, config, there, architecture)
    named = _first_called(there, heads)
    if len(named) > 1:
        raise _refused(store, f"{architecture} has several heads", named)
    if named:
        _refuse_stale(store, config, named[0], there)
        return named[0], f"{plain(named[0].name)}, the head of {architecture}"
    return _tied(store, config, there, architecture)


def _classifier(
    store: TensorStore, config: Mapping[str, Any], there: Sequence[Matrix], architecture: str
) -> tuple[Matrix, str]:
    """The one matrix with a row for each label, of a known name or with a bias."""
    labels = label_count(config)
    fitting = [each for each in there if each.classes == labels]
    named = [each for each in fitting if each.called(table.CLASS_HEADS)]
    biased = [each for each in fitting if each.bias]
    for some, how in ((named, "the head"), (biased, "the only matrix with a bias")):
        # a second head beside it, whose scores are averaged with its own
        twins = [
            each
            for each in biased
            if some and each.features == some[0].features and each.stem.count(".") < 2
        ]
        if len(some) == 1 and set(twins) <= set(some):
            why = f"{plain(some[0].name)}, {how} of {architecture} for its {labels} labels"
            return some[0], why
        if some:
            biased = twins or some
            break
    problem = "several layers" if named or biased else "no layer that is known"
    listed = biased or fitting or there
    raise _refused(store, f"{architecture} has {problem} for its {labels} labels", listed)


def _tied(
    store: TensorStore, config: Mapping[str, Any], there: Sequence[Matrix], architecture: str
) -> tuple[Matrix, str]:
    """The token embedding of a language model that stores no head of its own."""
    tied = tie(config)
    if tied is False or (tied is None and config.get("model_type") in table.UNTIED):
        raise _refused(
            store,
            f"the head of {architecture} is missing, and config.json says that the embedding is "
            "not tied to the output",
            there,
        )
    if table.PRETRAINING in architecture and not known_biases(store):
        raise _refused(store, f"{architecture} ends with no layer over words that is known", there)
    sizes = set(vocabularies(config))
    found = [each for each in there if each.called(table.EMBEDDINGS)]
    found = [each for each in found if not sizes or each.classes in sizes]
    found = _first_called(found, table.EMBEDDINGS)
    if len(found) != 1:
        raise _refused(store, f"{architecture} stores no head of its own", found or there)
    return found[0], f"{plain(found[0].name)}, the embedding that {architecture} is tied to"


def _undescribed(
    store: TensorStore, config: Mapping[str, Any], there: Sequence[Matrix], architecture: str
) -> tuple[Matrix, str]:
    """The head of tensors that nothing describes, or an architecture that no row of the table
    knows: by an unmistakable name or by structure.
    """
    heads = table.LANGUAGE_HEADS + table.FRAME_HEADS + table.CLASS_HEADS
    _refuse_coded(store, heads)
    named = [each for each in there if each.called(heads)]
    if "head.ctc_head.fc" in {each.stem for each in named}:
        named = [each for each in named if each.stem == "head.ctc_head.fc"]
    if len(named) > 1:
        raise _refused(store, "it has several heads", named)
    if named:
        _refuse_stale(store, config, named[0], there)
        return named[0], f"{plain(named[0].name)}, the only tensor with the name of a head"
    if len(there) == 1:
        return there[0], f"{plain(there[0].name)}, the only matrix that can be one"
    last = _last_of_sequence(store, there, heads)
    if last is not None:
        return last, f"{plain(last.name)}, the last of the layers that are numbered"
    # what an unknown architecture ends with may be another layer than its tied embedding
    if tie(config) and not architecture:
        return _tied(store, config, there, "the model")
    raise _refused(store, "no description says which matrix is the softmax layer", there)


def _last_of_sequence(
    store: TensorStore, there: Sequence[Matrix], heads: Sequence[str]
) -> Matrix | None:
    """The last layer of a Sequential that is a head by its name (`classifier.6`) or the whole model
    (`0`, `2`): the layers must fit onto one another, for parallel heads are numbered as well.
    """
    groups: dict[str, dict[int, list[str]]] = {}
    for name in store.names():
        numbered = _NUMBERED.match(canonical(name).rpartition(".")[0])
        if numbered:
            within = groups.setdefault(numbered[1] or "", {})
            within.setdefault(int(numbered[2]), []).append(name)
    roots = {canonical(name).split(".")[0] for name in store.names()}
    whole = all(root.isdigit() for root in roots)
    ends = [group for stem, group in groups.items() if stem in heads or (whole and not stem)]
    if len(ends) != 1:
        return None
    layers = {each.name: each for each in there}
    order = sorted(ends[0])
    chain = [next((layers[n] for n in ends[0][at] if n in layers), None) for at in order]
    matrices = [each for each in chain if each is not None]
    fits = all(a.classes == b.features for a, b in pairwise(matrices))
    return chain[-1] if fits else None


def _refuse_stale(
    store: TensorStore, config: Mapping[str, Any], head: Matrix, there: Sequence[Matrix]
) -> None:
    """ValueError when the model is said to be tied and the head that is stored differs from the
    embedding: programs that run it take the embedding.
    """
    if tie(config) is not True:
        return
    for other in _first_called(there, table.EMBEDDINGS):
        same_shape = store.shape(other.name) == store.shape(head.name)
        if same_shape and not np.array_equal(store.read(other.name), store.read(head.name)):
            raise _refused(
                store,
                "config.json ties the output to the embedding, but the head that is stored differs "
                "from it (programs that run the model take the embedding)",
                [head, other],
            )


def _refuse_coded(store: TensorStore, heads: Sequence[str]) -> None:
    """ValueError when a head is stored in codes or in parts, which the layer that runs is not."""
    for name in store.names():
        short = canonical(name)
        found = table.CODED.search(short)
        if found and called(short[: found.start()], heads):
            raise ValueError(
                f"{store.label}: the head is quantised or stored in parts ({plain(name)} "
                f"{store.shape(name)}), so the layer that runs is not in the file: pass the "
                "model's float weights, or merge its adapter first."
            )


def _first_called(there: Sequence[Matrix], patterns: Sequence[str]) -> list[Matrix]:
    """Those of the first pattern that has any."""
    for pattern in patterns:
        if found := [each for each in there if each.called((pattern,))]:
            return found
    return []


def _refused(store: TensorStore, why: str, some: Sequence[Matrix]) -> ValueError:
    listed = describe(store, [each.name for each in some])
    offer = f"name one (weight=, or --weight NAME): {listed}" if some else "it has no matrix"
    return ValueError(f"{store.label}: {why}; {offer}.")
