"""Every model class of Transformers that builds small from a configuration, saved to a folder and
read back: is the layer that `sg.load` takes the one that the model ends with?

`python scanner/tests/census/census.py [NAME ...]` writes results/bench/census.csv, a row for each
class: right, refused, wrong, or does not build; and scanner/docs/models.md.
Rows that are there are kept (`--anew` asks all again). No network: weights are random. The exit
code is 1 if any row is wrong.

The second route is the model itself: its output embeddings, or the one layer that has as many
outputs as labels; where there are several, a forward pass is watched for the layer whose output is
the model's logits. The model in memory must be read as its folder is. Where a normalisation is
claimed, what the model feeds its layer must lie on the surface that the normalisation gives.
"""

import argparse
import csv
import logging
import random
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import softgeom as sg

TABLE = Path(__file__).resolve().parents[3] / "results" / "bench" / "census.csv"
PAGE = """# Which models are supported

`softgeom` reads the layer that a model ends with from its folder. A census
(`scanner/tests/census/census.py`) checks this for {all} classes of Transformers, from causal
language models to classifiers of video. It compares the layer, and a normalisation that feeds it,
with the model's own, from the folder and in memory. Right: {right}. Refused: {refused}. Wrong:
{wrong}. The other {no} do not build small from their configuration.
[The table](../../results/bench/census.csv) has every class, what was refused, and why some do not
build.

A refusal lists the matrices that `--weight NAME` can choose.
"""
COLUMNS = ("class", "kind", "status", "in memory", "tensor", "bias", "norm", "seen by", "said")
KINDS = {
    "causal LM": "CAUSAL_LM",
    "masked LM": "MASKED_LM",
    "seq2seq LM": "SEQ_TO_SEQ_CAUSAL_LM",
    "speech to text": "SPEECH_SEQ_2_SEQ",
    "CTC": "CTC",
    "image and text LM": "IMAGE_TEXT_TO_TEXT",
    "sequence classification": "SEQUENCE_CLASSIFICATION",
    "token classification": "TOKEN_CLASSIFICATION",
    "image classification": "IMAGE_CLASSIFICATION",
    "audio classification": "AUDIO_CLASSIFICATION",
    "video classification": "VIDEO_CLASSIFICATION",
    "pretraining": "PRETRAINING",
}
LABELS, WORDS, SECONDS, LARGEST = 7, 211, 90, 10**8
# one number for each size that configurations name; a class that refuses them keeps its own
SMALL: dict[str, Any] = {
    "vocab_size": WORDS, "decoder_vocab_size": WORDS, "src_vocab_size": WORDS,
    "tgt_vocab_size": WORDS, "encoder_vocab_size": WORDS, "entity_vocab_size": WORDS,
    "hidden_size": 32, "d_model": 32,
    "n_embd": 32, "dim": 32, "embedding_size": 32, "emb_dim": 32, "num_hidden_layers": 2,
    "num_layers": 2, "n_layer": 2, "n_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_decoder_layers": 2, "num_attention_heads": 4, "num_heads": 4, "n_head": 4, "n_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "d_ff": 48, "ffn_dim": 48, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "n_inner": 48, "hidden_dim": 48, "moe_intermediate_size": 16,
    "num_local_experts": 2, "num_experts": 2, "n_routed_experts": 2, "head_dim": 8, "d_kv": 8,
    "num_experts_per_tok": 2, "moe_k": 2, "n_group": 1, "topk_group": 1, "rotary_dim": 8,
}  # fmt: skip
# what some classes need and their configuration leaves open
UNSAID: dict[str, Any] = {
    "vocab_size": WORDS, "num_key_value_heads": 2, "pad_token_id": 0, "mask_token_id": 0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
}  # fmt: skip
TOKENS = ("pad", "bos", "eos", "decoder_start", "sep", "cls", "mask", "unk")


def families() -> Iterator[tuple[str, str, str]]:
    """Kind, model type and class of each head of Transformers, each class once."""
    from transformers.models.auto import modeling_auto

    seen = set()
    for kind, table in KINDS.items():
        for family, names in getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES").items():
            for name in [names] if isinstance(names, str) else names:
                if name not in seen:
                    seen.add(name)
                    yield kind, family, name


def build(family: str, name: str) -> Any:
    """The model, as small as its configuration lets it be, with random numbers everywhere."""
    import torch
    import transformers
    from transformers.initialization import no_init_weights

    kind, reason = getattr(transformers, name), None
    heads = {key: size for key, size in SMALL.items() if key != "head_dim"}
    fewer = {key: size for key, size in SMALL.items() if "layer" in key or "vocab" in key}
    for sizes in (SMALL, heads, fewer, {}):
        try:
            with no_init_weights():
                model = kind(_configured(family, kind, sizes)).eval()
            if sum(tensor.numel() for tensor in model.parameters()) > LARGEST:
                raise RuntimeError(f"more than {LARGEST:,} numbers")
        except Exception as error:  # a size that does not fit another: the next try has fewer
            reason = reason or error
            continue
        # constants of an initialisation would hide a mix-up
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for tensor in model.parameters():
                if tensor.is_floating_point():
                    tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.3)
        model.tie_weights()
        return model
    raise RuntimeError(_first_line(reason))


def _first_line(error: Exception) -> str:
    """An error in short: Transformers leaves the first lines of some of its own empty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])[:120] if lines else type(error).__name__


def _configured(family: str, kind: Any, sizes: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    # a part of a larger model has a configuration of its own
    plain = (kind.config_class or type(AutoConfig.for_model(family)))()
    asked = _shrunk(plain, sizes)
    for name, part in vars(plain).items():
        if hasattr(part, "to_dict") and hasattr(part, "model_type"):
            asked[name] = {"model_type": part.model_type, **_shrunk(part, sizes)}
    config = type(plain)(**asked)
    config.num_labels = LABELS
    config.use_cache = False
    if getattr(config, "problem_type", None) is None:
        config.problem_type = "single_label_classification"
    return config


def _shrunk(config: Any, sizes: dict[str, Any]) -> dict[str, Any]:
    """The sizes that a configuration has, and tokens that the small vocabulary has."""
    own = [key for key in sizes if not isinstance(getattr(type(config), key, None), property)]
    small = {key: sizes[key] for key in own if type(getattr(config, key, None)) is int}
    small |= {key: size for key, size in UNSAID.items() if getattr(config, key, 0) is None}
    tokens = (f"{token}_token_id" for token in TOKENS)
    return small | {key: 0 for key in tokens if isinstance(getattr(config, key, None), int)}


def truth(model: Any) -> tuple[Any, str]:
    """The layer and how it was found: as the model says, else by what it does."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if getattr(head, "out_features", None) is not None:  # an embedding is only tied, if at all
        return head, "output embeddings"
    outputs = (
        getattr(part, "out_features", getattr(part, "out_channels", None))
        for part in model.modules()
    )
    last = [part for part, n in zip(model.modules(), outputs, strict=True) if n == LABELS]
    if len(last) == 1:
        return last[0], "number of labels"
    watched = _watched(model)
    if watched is None:
        raise RuntimeError(f"{len(last)} layers may be its head")
    return watched, "forward pass"


def _runs(model: Any, layers: list[Any]) -> Iterator[tuple[Any, list[tuple[Any, Any, Any]]]]:
    """The logits for each input that the model takes, and the layers that ran with what each was
    fed and gave, in their order.
    """
    import torch

    seen: list[tuple[Any, Any, Any]] = []
    hooks = [part.register_forward_hook(lambda *three: seen.append(three)) for part in layers]
    try:
        for given in _inputs(model):
            seen.clear()
            try:
                with torch.no_grad():
                    logits = getattr(model(**given), "logits", None)
            except Exception:  # not an input of this model
                continue
            if torch.is_tensor(logits):
                yield logits, seen
    finally:
        for hook in hooks:
            hook.remove()


def _watched(model: Any) -> Any:
    """The layer whose output is the logits of some input, or None."""
    layers = [part for part in model.modules() if getattr(part, "weight", None) is not None]
    for logits, seen in _runs(model, layers):
        for part, _, out in reversed(seen):
            if hasattr(out, "shape") and _same(out, logits):
                return part
    return None


def _fed(model: Any, layer: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """What the model feeds its layer (n, d) for one of the inputs, and its scores; or None."""
    for logits, seen in _runs(model, [layer]):
        if seen:
            fed = seen[-1][1][0]
            return tuple(each.detach().double().flatten(0, -2).numpy() for each in (fed, logits))
    return None


def _gives(x: np.ndarray, scores: np.ndarray, W: np.ndarray, b: np.ndarray) -> bool:
    """Whether W x + b are the model's scores: some models add a bias outside of their layer."""
    made = x @ W.T + b
    return made.shape == scores.shape and np.allclose(made, scores, atol=1e-3)


def _on_surface(x: np.ndarray, features: sg.Ellipsoid) -> bool:
    """Whether features lie where every output of a normalisation does."""
    u = (x - features.bias) / features.gain
    flat = np.allclose(u.mean(axis=1), 0, atol=1e-3)
    return flat == features.centred and np.allclose(
        np.linalg.norm(u, axis=1), features.radius, rtol=0.02
    )


def _same(out: Any, logits: Any) -> bool:
    """Whether the scores are the layer's: all, those of one place of a sequence, or their mean."""
    if out.shape[-1] != logits.shape[-1] or out.ndim < 2:
        return False
    ways = [out, *([out[:, 0], out[:, -1], out.mean(1)] if out.ndim == logits.ndim + 1 else [])]
    return any(w.shape == logits.shape and bool(((w - logits).abs() < 1e-4).all()) for w in ways)


def _inputs(model: Any) -> Iterator[dict[str, Any]]:
    import torch

    torch.manual_seed(1)
    ids = torch.arange(1, 17)[None]
    both = {"input_ids": ids, "decoder_input_ids": ids}
    size = getattr(model.config, "image_size", None)
    side = size if isinstance(size, int) else 224
    yield {"input_ids": ids}
    yield both
    yield {"input_ids": ids, "bbox": torch.zeros(1, 16, 4, dtype=torch.long)}
    for pixels in dict.fromkeys((side, 224, 64)):
        yield {"pixel_values": torch.randn(1, 3, pixels, pixels)}
    yield {"pixel_values": torch.randn(1, getattr(model.config, "num_frames", 8), 3, side, side)}
    yield {"input_values": torch.randn(1, 16000)}
    for shape in ((1, 80, 3000), (1, 100, 80), (1, 100, 160), (1, 1024, 128)):
        for key in ("input_features", "input_values"):
            yield {key: torch.randn(shape)} | ({"decoder_input_ids": ids} if shape[1] == 80 else {})


def _numbers(layer: Any) -> tuple[np.ndarray, np.ndarray | None]:
    W = layer.weight.detach().float().numpy()
    b = getattr(layer, "bias", None)
    return W.reshape(len(W), -1), None if b is None else b.detach().float().numpy()


def row(kind: str, family: str, name: str) -> dict[str, str]:
    """What the reader makes of one class."""
    told = {"class": name, "kind": kind, "status": "does not build"}
    try:
        model = build(family, name)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            try:
                head = sg.load(folder)
            except ValueError as error:
                return told | {"status": "refused", "said": str(error).replace(folder, "FOLDER")}
            layer, seen = truth(model)
            W, b = _numbers(layer)
    except Exception as error:
        return told | {"said": _first_line(error)}
    told |= {"tensor": head.names["weight"], "bias": head.names.get("bias", ""), "seen by": seen}
    ours, bias = head.layer.W, head.layer.b
    if ours.shape != W.shape or not np.allclose(ours, W, atol=1e-6):
        return told | {"status": "wrong", "said": f"{ours.shape} in place of {W.shape}"}
    fed = _fed(model, layer)
    ours, zero = (np.zeros(len(W)) if each is None else each for each in (bias, b))
    if not (np.allclose(ours, zero, atol=1e-6) or (fed and _gives(*fed, W, ours))):
        return told | {"status": "wrong", "said": "the matrix is right, the bias is not"}
    if head.features is not None and fed and not _on_surface(fed[0], head.feature_set()[0]):
        return told | {"status": "wrong", "said": "its features are not what its norm gives"}
    told["in memory"] = live = _in_memory(model, head.layer)
    if live == "wrong":
        return told | {"status": "wrong", "said": "the folder is right, the model in memory is not"}
    norm = head.names.get("gain", "")
    return told | {"status": "right", "norm": norm + " (not watched)" * bool(norm and not fed)}


def _in_memory(model: Any, layer: sg.SoftmaxLayer) -> str:
    """Whether the model itself is read as its folder is."""
    try:
        live = sg.load(model).layer
    except ValueError:
        return "refused"
    zero = np.zeros(layer.classes)
    b, ours = (zero if each.b is None else each.b for each in (layer, live))
    same = live.W.shape == layer.W.shape and np.allclose(live.W, layer.W, atol=1e-6)
    return "right" if same and np.allclose(b, ours, atol=1e-6) else "wrong"


def page(rows: list[dict[str, str]]) -> str:
    """scanner/docs/models.md, of the table."""
    had = Counter(each["status"] for each in rows)
    states = {state: had[state] for state in ("right", "refused", "wrong")}
    return PAGE.format(all=len(rows), no=had["does not build"], **states)


def main() -> int:
    """Ask, and keep the table as rows come; the exit code."""
    import transformers

    parser = argparse.ArgumentParser(prog="census", description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="classes (default: all)")
    parser.add_argument("--anew", action="store_true", help="ask those again that have a row")
    parser.add_argument("--out", type=Path, default=TABLE)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("takes too long")))
    transformers.utils.logging.disable_progress_bar()
    kept = options.out.read_text(encoding="utf-8") if options.out.is_file() else ""
    rows = {each["class"]: each for each in csv.DictReader(kept.splitlines())}
    everything = list(families())
    random.Random(0).shuffle(everything)  # a part of the census is a sample of it
    for kind, family, name in everything:
        if name in options.names if options.names else options.anew or name not in rows:
            signal.alarm(SECONDS)
            rows[name] = row(kind, family, name)
            signal.alarm(0)
            print(*(rows[name].get(key, "") for key in COLUMNS), sep=" | ", flush=True)
            with options.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
                writer.writeheader()
                writer.writerows(sorted(rows.values(), key=lambda r: (r["kind"], r["class"])))
    if options.out == TABLE:
        ordered = sorted(rows.values(), key=lambda each: (each["kind"], each["class"]))
        (TABLE.parents[2] / "scanner" / "docs" / "models.md").write_text(
            page(ordered), encoding="utf-8"
        )
    return int(any(each["status"] == "wrong" for each in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
