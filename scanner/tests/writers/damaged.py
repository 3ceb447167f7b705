"""Small good files of every kind, and damages of them: whatever a reader does with one, it answers
with a layer or with a sentence of its own.
"""

import functools
import io
import json
import pickle
import struct
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from recogniser_writers import paddle

from softgeom.checkpoints import load_head
from softgeom.commands.boundary import NO_MEMORY, REFUSED, explain

# what a length, an offset or a count is replaced by, in one to eight bytes
_EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)
_RNG = np.random.default_rng(0)
W = _RNG.standard_normal((12, 4)).astype(np.float32)
B = _RNG.standard_normal(12).astype(np.float32)
_NAMES = [f"t{i}" for i in range(len(W))]
_PADDLE = paddle({"fc.w_0": W.T, "fc.b_0": B}, [("matmul", [5, 1], 6), ("add", [6, 2], 7)])
# what stands, whole, beside a file of that name
_BESIDE = {"m.pdiparams": ("m.json", _PADDLE[2])}


def kinds() -> dict[str, tuple[str, Callable[[], bytes]]]:
    """File name and content of each kind of file that the packages here can write."""
    made = {
        "npz": ("a.npz", _npz),
        "npy": ("a.npy", _npy),
        "safetensors": ("a.safetensors", _safetensors),
        "onnx": ("a.onnx", lambda: _onnx("MatMul")),
        "onnx quantised": ("a.onnx", lambda: _onnx("MatMulInteger")),
        "torch": ("a.pt", lambda: _torch(zipped=True)),
        "torch legacy": ("a.pt", lambda: _torch(zipped=False)),
        "pickle": ("a.pkl", lambda: pickle.dumps({"head": {"W": W, "b": B}, "W": W, "b": B})),
        "gguf": ("a.gguf", lambda: _gguf(quantised=False)),
        "gguf quantised": ("a.gguf", lambda: _gguf(quantised=True)),
        "tflite": ("a.tflite", _tflite),
        "llama2.c": ("a.bin", _llama2c),
        "paddle": ("m.pdiparams", lambda: _PADDLE[0]),
        "tokenizer": ("tokenizer.json", _tokenizer),
        "names": ("names.json", lambda: json.dumps({"id2label": dict(enumerate(_NAMES))}).encode()),
        "names pickled": ("names.pkl", lambda: pickle.dumps(_NAMES, protocol=2)),
    }
    here = {}
    for kind, (name, content) in made.items():
        try:
            here[kind] = (name, functools.partial(bytes, content()))
        except ImportError:
            continue
    return here


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The file with one to three damages: a piece turned over, replaced, cut out, doubled, cut off
    or taken from elsewhere in it.
    """
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.integers(1, 32))
        match draw(st.sampled_from(("bit", "edge", "bytes", "cut", "less", "double", "moved"))):
            case "bit":
                data[at : at + 1] = bytes([(data[at] if data else 0) ^ 1 << length % 8])
            case "edge":
                width, order = draw(st.sampled_from((1, 2, 4, 8))), ("little", "big")
                edge = draw(st.sampled_from(_EDGES)) % 2 ** (8 * width)
                data[at : at + width] = edge.to_bytes(width, draw(st.sampled_from(order)))
            case "bytes":
                data[at : at + length] = draw(st.binary(min_size=1, max_size=length))
            case "cut":
                del data[at:]
            case "less":
                del data[at : at + length]
            case "double":
                data[at:at] = data[at : at + length]
            case "moved":
                elsewhere = draw(st.integers(0, max(0, len(whole) - 1)))
                data[at : at + length] = whole[elsewhere : elsewhere + length]
    return bytes(data)


def answer(folder: Path, name: str, content: bytes, *, beside: bool = True) -> str:
    """What is wrong with the reader's answer, which is a layer or a refusal in a sentence."""
    (folder / name).write_bytes(content)
    if beside and name in _BESIDE:
        other, whole = _BESIDE[name]
        (folder / other).write_bytes(whole)
    names = name if name.startswith(("names", "tokenizer")) else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if names is None:
                load_head(folder / name)
            else:
                load_head(W, tokens=folder / name)
    except Exception as error:
        sentence, code = explain(error)
        if code == REFUSED and sentence.isprintable():
            return ""
        what = "memory ran out" if code == NO_MEMORY else f"{type(error).__name__}: {error}"
        return what if code != REFUSED else f"control characters: {sentence!a}"
    return ""


def _npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, W=W, b=B, tokens=np.array(_NAMES))
    return buffer.getvalue()


def _npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, W)
    return buffer.getvalue()


def _safetensors() -> bytes:
    from safetensors.numpy import save

    return save({"lm_head.weight": W, "lm_head.bias": B, "model.norm.weight": W[0]}, {"a": "b"})


_BEFORE = {
    "MatMul": "h = Tanh(x) m = MatMul(h, W) c = Mul(m, s) a = Add(c, b)",
    "MatMulInteger": """q, scale, z = DynamicQuantizeLinear(x) m = MatMulInteger(q, W, z, zero)
        f = Cast <to = 1> (m) both = Mul(scale, s) c = Mul(f, both) a = Add(c, b)""",
}


def _onnx(product: str) -> bytes:
    import onnx.parser

    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1, 4] x) => (float[1, 12] y) {{ {_BEFORE[product]} y = Softmax(a) }}""")
    constants = {"W": W.T.copy(), "b": B, "s": np.float32([0.5])}
    if product == "MatMulInteger":
        constants |= {"W": np.int8(W.T * 30), "zero": np.int8([0])}
    held = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    model.graph.initializer.extend(held)
    onnx.helper.set_model_props(model, {"character": "\n".join(_NAMES[:10])})
    return bytes(model.SerializeToString())


def _torch(*, zipped: bool) -> bytes:
    import torch

    state = {"lm_head.weight": torch.from_numpy(W), "lm_head.bias": torch.from_numpy(B)}
    buffer = io.BytesIO()
    torch.save(state, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


def _gguf(*, quantised: bool) -> bytes:
    import gguf

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(_NAMES)
        matrix = np.tile(W, (1, 8))  # rows of whole blocks of 32
        kind = gguf.GGMLQuantizationType.Q8_0
        if quantised:
            writer.add_tensor("output.weight", gguf.quantize(matrix, kind), raw_dtype=kind)
        else:
            writer.add_tensor("output.weight", matrix)
        writer.add_tensor("output_norm.weight", matrix[0])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def _tflite() -> bytes:
    from tflite_writer import classifier

    with tempfile.TemporaryDirectory() as folder:
        return Path(classifier(Path(folder) / "a.tflite", W[:5, :3], B[:5])).read_bytes()


def _llama2c() -> bytes:
    sizes = (4, 8, 1, 2, 1, 12, 4)  # dim, hidden, layers, heads, key heads, classes, positions
    numbers = 12 * 4 + 4 + 16 + 8 + 8 + 16 + 4 + 32 + 32 + 32 + 4 + 4 + 4
    return struct.pack("<7i", *sizes) + np.ones(numbers, "<f4").tobytes()


def _tokenizer() -> bytes:
    vocabulary = {name: n for n, name in enumerate(_NAMES[:10])}
    content = {
        "model": {"type": "BPE", "vocab": vocabulary},
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteLevel"}]},
        "added_tokens": [{"id": 10, "content": "<end>"}],
    }
    return json.dumps(content).encode()
