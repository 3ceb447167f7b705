"""What `config.json` says of the layer that a model ends with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from softgeom.checkpoints import head_table as table
from softgeom.checkpoints.tensors import plain


def described(config: Mapping[str, Any]) -> tuple[str, str | None]:
    """The class that `architectures` names, and what it ends with; None where nothing says it."""
    listed = config.get("architectures")
    name = str(listed[0]) if isinstance(listed, list) and listed else ""
    ends = next((what for part, what in table.ENDINGS if part in name), None)
    maps = config.get("auto_map")
    if ends == table.NOTHING and isinstance(maps, Mapping) and "AutoModelForCausalLM" in maps:
        ends = table.LANGUAGE  # ChatGLMModel
    return plain(name), ends


def label_names(config: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names of a classifier's classes in their order; None where they are not all numbered."""
    names = config.get("id2label")
    if not isinstance(names, Mapping):
        return None
    numbered = {str(key): str(name) for key, name in names.items()}
    order = [str(index) for index in range(len(numbered))]
    return tuple(numbered[key] for key in order) if order and set(order) == set(numbered) else None


def label_count(config: Mapping[str, Any]) -> int:
    """How many classes a classifier has; Transformers writes nothing where they are two."""
    names = config.get("id2label")
    if isinstance(names, Mapping):
        return len(names)
    count = config.get("num_labels")
    return count if isinstance(count, int) else 2


def vocabularies(config: Mapping[str, Any]) -> Iterable[int]:
    """Every size of a vocabulary that a configuration names, in its parts too."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from vocabularies(value)
        elif str(key).endswith("vocab_size") and isinstance(value, int):
            yield value


def tie(config: Mapping[str, Any]) -> bool | None:
    """Whether the output is the embedding; None where no part of the configuration says it."""
    parts = [config.get(name) for name in ("text_config", "decoder")]
    inner = next((part for part in parts if isinstance(part, Mapping)), {})
    # of two models in one, the decoder's own word counts
    said = None if isinstance(config.get("encoder"), Mapping) else config.get("tie_word_embeddings")
    said = inner.get("tie_word_embeddings") if said is None else said
    return said if isinstance(said, bool) else None
