"""Layers of a hundred megabytes, in every kind of file: a scan of a few classes holds less than
`trial.TIMES` times their bytes.

Most of the file is the layer's; `beside` puts as much again next to it that no scan needs, and that
must not be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torture.hostile_files import Case
from torture.trial import OK

CLASSES, FEATURES = 100_000, 256
BYTES = 4 * CLASSES * FEATURES


def cases() -> Iterator[Case]:
    """Every kind of file that holds tensors."""
    writers: dict[str, Callable[[Path], Path]] = {
        "npz": _npz,
        "npz compressed": _compressed,
        "npz beside": _npz_beside,
        "safetensors": _safetensors,
        "safetensors bfloat16": _bfloat16,
        "onnx": _onnx,
        "onnx external data": _external,
        "torch": _torch,
        "folder shards": _shards,
    }
    for name, write in writers.items():
        kind, _, rest = name.partition(" ")
        yield Case(f"{kind} of a hundred megabytes {rest}".strip(), OK, _few_classes(write), BYTES)


def _few_classes(write: Callable[[Path], Path]) -> Callable[[Path], list[str]]:
    return lambda folder: [str(write(folder)), "--classes", "0-9"]


def _layer() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((CLASSES, FEATURES), dtype=np.float32)


def _npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", W=_layer())
    return folder / "a.npz"


def _compressed(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", W=_layer().round(0))
    return folder / "a.npz"


def _npz_beside(folder: Path) -> Path:
    np.savez(folder / "a.npz", W=_layer(), unneeded=np.zeros(3 * CLASSES * FEATURES, np.float32))
    return folder / "a.npz"


def _save(path: Path, **tensors: Any) -> Path:
    from safetensors.numpy import save_file

    save_file(tensors, path)
    return path


def _safetensors(folder: Path) -> Path:
    return _save(
        folder / "a.safetensors", **{"lm_head.weight": _layer(), "model.layers.0": _layer()}
    )


def _bfloat16(folder: Path) -> Path:
    """By hand: NumPy has no such type."""
    data = (_layer().view(np.uint32) >> 16).astype("<u2").tobytes()
    entry = {"dtype": "BF16", "shape": [CLASSES, FEATURES], "data_offsets": [0, len(data)]}
    header = json.dumps({"lm_head.weight": entry}).encode()
    (folder / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    return folder / "a.safetensors"


def _model() -> Any:
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["m"]),
        helper.make_node("Softmax", ["m"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    inputs, outputs = (
        value("x", TensorProto.FLOAT, [1, FEATURES]),
        value("y", TensorProto.FLOAT, [1, CLASSES]),
    )
    W = numpy_helper.from_array(np.ascontiguousarray(_layer().T), "W")
    return helper.make_model(helper.make_graph(nodes, "g", [inputs], [outputs], [W]))


def _onnx(folder: Path) -> Path:
    (folder / "a.onnx").write_bytes(_model().SerializeToString())
    return folder / "a.onnx"


def _external(folder: Path) -> Path:
    import onnx

    onnx.save(_model(), str(folder / "a.onnx"), save_as_external_data=True, location="a.bin")
    return folder / "a.onnx"


def _torch(folder: Path) -> Path:
    import torch

    torch.save({"lm_head.weight": torch.from_numpy(_layer())}, folder / "a.pt")
    return folder / "a.pt"


def _shards(folder: Path) -> Path:
    (folder / "m").mkdir()
    _save(folder / "m" / "model-1.safetensors", **{"model.layers.0": _layer()})
    _save(folder / "m" / "model-2.safetensors", **{"lm_head.weight": _layer()})
    place = {"model.layers.0": "model-1.safetensors", "lm_head.weight": "model-2.safetensors"}
    (folder / "m" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))
    (folder / "m" / "config.json").write_text(
        json.dumps({"model_type": "llama", "hidden_size": FEATURES})
    )
    return folder / "m"
