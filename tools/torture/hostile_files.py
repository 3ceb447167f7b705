"""Files that nobody should be fooled by: each case writes one, and says what `softgeom scan` must
answer.

`ERROR` means one sentence on standard error and an exit code that is not zero; `OK` means a scan
that ends with every verdict proven. A case is a function of a folder that returns the arguments
behind `softgeom scan`.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from torture.trial import ANY, ERROR, OK


@dataclass(frozen=True)
class Case:
    """One hostile input; the first word of its name is the kind of file."""

    title: str
    expect: str
    write: Callable[[Path], list[str]]
    declared: int = 0  # bytes of the tensors in use

    @property
    def kind(self) -> str:
        return self.title.partition(" ")[0]

    @property
    def name(self) -> str:
        return self.title.partition(" ")[2]


def cases() -> Iterator[Case]:
    """Every case, by kind of file."""
    formats = (_npz, _npy_headers, _weights, _safetensors, _onnx, _torch, _pickles)
    for kind in (*formats, _folders, _llama2c, _tokens, _options, _out, _paths):
        yield from kind()


def models() -> Iterator[Case]:
    """Those about the model alone, for a command that must give them an answer, right or not."""
    for case in cases():
        if case.kind not in ("tokens", "options", "out"):
            yield replace(case, expect=ANY)


def good(folder: Path) -> list[str]:
    """A layer with nothing wrong."""
    return _file("a.npz", _npz_bytes(W=W, b=B))(folder)


# ---- A small layer that is right, to be spoilt


_RNG = np.random.default_rng(0)
W = _RNG.standard_normal((12, 4)).astype(np.float32)
B = _RNG.standard_normal(12).astype(np.float32)
_DEEP = b"[" * 100_000 + b"]" * 100_000


def _npz_bytes(compressed: bool = False, **arrays: Any) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def _file(name: str, content: bytes) -> Callable[[Path], list[str]]:
    def write(folder: Path) -> list[str]:
        (folder / name).write_bytes(content)
        return [str(folder / name)]

    return write


def _of(kind: str, file: str) -> Callable[..., Case]:
    """`case(name, content, expect)`: that content in a file of that kind."""

    def case(name: str, content: bytes, expect: str = ERROR) -> Case:
        return Case(f"{kind} {name}", expect, _file(file, content))

    return case


def _archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _npy_header(text: str, body: bytes = b"") -> bytes:
    head = text.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body


def _described(dtype: str, shape: str, *, columns: bool = False) -> str:
    """The header of an .npy file of that type and shape, both as Python would write them."""
    return f"{{'descr': {dtype}, 'fortran_order': {columns}, 'shape': {shape}, }}"


def _flip(content: bytes, position: int, mask: int = 0xFF) -> bytes:
    return content[:position] + bytes([content[position] ^ mask]) + content[position + 1 :]


def _written_over(content: bytes, position: int, with_: bytes) -> bytes:
    return content[:position] + with_ + content[position + len(with_) :]


# ---- npz


def _npz() -> Iterator[Case]:
    case = _of("npz", "a.npz")
    good, packed = _npz_bytes(W=W, b=B), _npz_bytes(True, W=W, b=B)
    yield case("good", good, OK)
    yield case("compressed", packed, OK)
    for share in (0, 0.01, 0.2, 0.5, 0.9, 0.99):
        yield case(f"cut at {share:.0%}", good[: int(share * len(good))])
    yield case("without its last byte", good[:-1])
    yield case("of zeros", bytes(1000))
    yield case("of text", b"hello world\n" * 50)
    yield case("a bit flipped in the data", _flip(good, good.index(W.tobytes()[:16]) + 3, 1))
    central = good.index(b"PK\x01\x02")
    yield case("a bit flipped in the directory's checksum", _flip(good, central + 16, 1))
    yield case("a bit flipped in the directory's size", _flip(good, central + 24, 4))
    for name, change, local, listed in (
        ("encrypted", lambda old: old | 1, 6, 8),
        ("foreign compression", lambda _: 99, 8, 10),
    ):
        spoilt = bytearray(good)
        for signature, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", listed)):
            at = good.find(signature)
            while at >= 0:
                spoilt[at + offset] = change(spoilt[at + offset])
                at = good.find(signature, at + 1)
        yield case(name, bytes(spoilt))
    for name, method in (("LZMA", zipfile.ZIP_LZMA), ("BZIP2", zipfile.ZIP_BZIP2)):
        archive = _archive(("W.npy", _npy(W)), method=method)
        yield case(f"{name} garbage", _written_over(archive, 60, b"\x5a" * 30))
    yield case("corrupt deflate", _written_over(packed, 60, b"\xaa" * 20))

    unneeded = _bomb("unneeded.npy", ("W.npy", W), ("b.npy", B))
    yield Case("npz bomb in a member that nobody needs", OK, unneeded)
    yield Case("npz bomb for a bias", ERROR, _bomb("b.npy", ("W.npy", W)))
    yield case("member without .npy", _archive(("W", b"not numbers")))
    yield case("no member at all", _archive())
    yield case("W twice", _archive_twice())
    yield case("names with escapes", _archive(("\x1b[31mred\nsecond line.npy", _npy(W))), OK)
    yield case("a name that climbs", _archive(("../../../W.npy", _npy(W))), OK)
    yield case("is one npy", _npy(W))
    yield case("objects", _npz_bytes(W=np.array([[object()]], dtype=object).astype(str)))
    for name, tokens, expect in (
        ("0-d tokens", "abc", ERROR),
        ("integer 0-d tokens", 5, ERROR),
        ("2-d tokens", [["a", "b"]] * 12, ERROR),
        ("too few tokens", ["a"] * 3, ERROR),
        ("tokens as they should be", [f"t{i}" for i in range(12)], OK),
        ("tokens of control characters", [f"\x1b[3{i}m\r\n" for i in range(12)], OK),
    ):
        yield case(name, _npz_bytes(W=W, b=B, tokens=np.array(tokens)), expect)
    long = _npz_bytes(True, W=W, b=B, tokens=np.array([f"t{i}" * 50 for i in range(12)]))
    spoilt_tokens = _written_over(long, long.index(b"tokens.npy") + 30, b"\x99" * 20)
    yield case("tokens in corrupt deflate", spoilt_tokens)


def _bomb(name: str, *others: tuple[str, np.ndarray]) -> Callable[[Path], list[str]]:
    """An archive of a megabyte whose member of that name unpacks to 400."""

    def write(folder: Path) -> list[str]:
        header = io.BytesIO()
        described = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (50_000_000,)}
        np.lib.format.write_array_header_1_0(header, described)
        with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as file:
            for other, array in others:
                file.writestr(other, _npy(array))
            with file.open(name, "w", force_zip64=True) as member:
                member.write(header.getvalue())
                for _ in range(400):
                    member.write(bytes(1_000_000))
        return [str(folder / "a.npz")]

    return write


def _archive_twice() -> bytes:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _archive(("W.npy", _npy(W)), ("W.npy", _npy(W * 2)))


def _npy_headers() -> Iterator[Case]:
    case, numbers, deep = _of("npy", "a.npz"), W.tobytes(), "(" * 3000 + ")" * 3000
    for name, header, body, expect in (
        ("claims 2^60 x 4 without data", _described("'<f4'", f"({2**60}, 4)"), b"", ERROR),
        ("claims 4 TB without data", _described("'<f2'", f"({2**31}, 1024)"), b"", ERROR),
        ("claims more than there is", _described("'<f4'", "(120, 4)"), numbers, ERROR),
        ("claims less than there is", _described("'<f4'", "(6, 4)"), numbers, ERROR),
        ("negative", _described("'<f4'", "(-12, 4)"), numbers, ERROR),
        ("unclosed", _described("'<f4'", "\xb312, 4)"), b"", ERROR),
        ("no rows", _described("'<f4'", "(0, 4)"), b"", ERROR),
        ("no columns", _described("'<f4'", "(12, 0)"), b"", ERROR),
        ("nested parentheses", _described("'<f4'", deep), b"", ERROR),
        ("a call", "__import__('os').system('touch /tmp/owned')", b"", ERROR),
        ("not a dictionary", "[1, 2, 3]", b"", ERROR),
        ("unknown type", _described("'<z9'", "(12, 4)"), numbers, ERROR),
        ("structured", _described("[('a', '<f4'), ('b', '<f4')]", "(12, 2)"), numbers, ERROR),
        ("objects", _described("'|O'", "(12, 4)"), pickle.dumps([1] * 48), ERROR),
        ("float shape", _described("'<f4'", "(12.9, 4)"), numbers, ERROR),
        ("column order", _described("'<f4'", "(12, 4)", columns=True), numbers, OK),
    ):
        yield case(f"header {name}", _archive(("W.npy", _npy_header(header, body))), expect)


def _weights() -> Iterator[Case]:
    def layer(name: str, expect: str = ERROR, **arrays: Any) -> Case:
        return Case(f"weights {name}", expect, _file("a.npz", _npz_bytes(**arrays)))

    for name, value in (("NaN", np.nan), ("infinity", np.inf), ("minus infinity", -np.inf)):
        for where in ("W", "b"):
            arrays = {"W": W.copy(), "b": B.copy()}
            arrays[where].flat[3] = value
            yield layer(f"{name} in {where}", **arrays)
    for name, dtype in (("complex", np.complex64), ("text", str), ("bytes", bytes), ("bool", bool)):
        yield layer(f"{name} W", W=W.astype(dtype), b=B)
        yield layer(f"{name} b", W=W, b=B.astype(dtype))
    yield layer("dates", W=np.arange(48).astype("datetime64[s]").reshape(12, 4), b=B)
    yield layer("durations", W=np.arange(48).astype("timedelta64[s]").reshape(12, 4), b=B)
    yield layer("quantised int8", W=(W * 40).astype(np.int8), b=B)
    yield layer("quantised uint8", W=(W * 40 + 100).astype(np.uint8), b=B)
    large = np.array([[2**53, 1], [2**53 + 1, 1], [0, 0]])
    yield layer("int64 beyond float64", W=large, b=np.zeros(3))
    long = np.array([[1, 1], [2, 3]], dtype=np.longdouble) + np.longdouble(2) ** -60
    yield layer("long double beyond float64", W=long)
    yield layer("one class", W=W[:1], b=B[:1])
    yield layer("no class", W=W[:0], b=B[:0])
    yield layer("a vector", W=W[0])
    yield layer("a scalar", W=np.float32(1))
    yield layer("three axes", W=W.reshape(3, 4, 4), b=B)
    yield layer("bias too short", W=W, b=B[:-1])
    yield layer("bias too long", W=W, b=np.append(B, 1))
    yield layer("bias two rows", W=W, b=np.stack([B, B]))
    yield layer("bias a scalar", W=W, b=np.float32(1))
    yield layer("transposed", W=W.T.copy(), b=B)
    yield layer("unknown names", kernel=W, offset=B)
    yield layer("equal rows", OK, W=np.ones_like(W), b=np.zeros_like(B))
    yield layer("zeros", OK, W=np.zeros_like(W), b=np.zeros_like(B))
    yield layer("one feature", OK, W=W[:, :1], b=B)
    yield layer("two classes", OK, W=W[:2], b=B[:2])
    yield layer("float16", OK, W=W.astype(np.float16), b=B.astype(np.float16))
    yield layer("float64", OK, W=W.astype(float), b=B.astype(float))
    yield layer("big endian", OK, W=W.astype(">f4"), b=B.astype(">f4"))
    yield layer("integers", OK, W=(W * 5).astype(np.int64), b=(B * 5).astype(np.int64))
    yield layer("bias as a row", OK, W=W, b=B[None])
    for scale in (1e-300, 1e-165, 1e-18, 1e20, 1e100, 1e300):
        scaled = W.astype(float) * scale
        yield layer(f"float64 scaled by {scale:g}", OK, W=scaled, b=B.astype(float) * scale)
        yield layer(f"rows alone scaled by {scale:g}", OK, W=scaled, b=B.astype(float))
    yield layer("float64 of 1e308", OK, W=np.sign(W).astype(float) * 1e308)
    yield layer("least bias", OK, W=np.array([[0.0], [1], [-1]]), b=np.array([5e-324, 0, 0]))
    yield layer("subnormal", OK, W=W.astype(float) * 1e-310)


# ---- safetensors


def _safetensors_bytes(header: Any, data: bytes, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def _entry(dtype: str = "F32", shape: Any = (12, 4), offsets: Any = (0, 192)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def _safetensors() -> Iterator[Case]:
    case, name, data = _of("safetensors", "a.safetensors"), "lm_head.weight", W.tobytes()
    whole = _safetensors_bytes({name: _entry()}, data)

    def weight(**changed: Any) -> dict[str, Any]:
        return {name: _entry(**changed)}

    def written(shape: str, offsets: str = "[0, 192]", key: str = name) -> bytes:
        entry = f'{{"dtype": "F32", "shape": {shape}, "data_offsets": {offsets}}}'
        return f'{{"{key}": {entry}}}'.encode()

    half = (W.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    twice = written("[12, 4]")[:-1] + b", " + written("[6, 8]")[1:]
    many = {f"t{i}": _entry() for i in range(50_000)}
    for title, header, body, expect in (
        ("good", weight(), data, OK),
        ("with metadata", {"__metadata__": {"a": "b"}} | weight(), data, OK),
        ("bfloat16", weight(dtype="BF16", offsets=(0, 96)), half, OK),
        ("nested too deeply", _DEEP, data, ERROR),
        ("nested objects", b'{"a":' * 50_000 + b"1" + b"}" * 50_000, data, ERROR),
        ("a list", b"[1, 2]", data, ERROR),
        ("no JSON", b"{lm_head: 1}", data, ERROR),
        ("bad UTF-8", b'{"\xff\xfe": 1}', data, ERROR),
        ("offsets Infinity", written("[12, 4]", "[0, Infinity]"), data, ERROR),
        ("shape 1e400", written("[1e400, 4]"), data, ERROR),
        ("shape NaN", written("[NaN, 4]"), data, ERROR),
        ("float shape", weight(shape=(12.9, 4)), data, ERROR),
        ("text shape", weight(shape=("12", "4")), data, ERROR),
        ("true for a shape", weight(shape=(True, 48)), data, ERROR),
        ("negative shape", weight(shape=(-12, -4)), data, ERROR),
        ("zero shape", weight(shape=(0, 4), offsets=(0, 0)), b"", ERROR),
        ("huge shape", weight(shape=(2**40, 2**20)), data, ERROR),
        ("a shape of a thousand axes", weight(shape=[1] * 1000 + [12, 4]), data, ERROR),
        ("offsets backwards", weight(offsets=(192, 0)), data, ERROR),
        ("offsets negative", weight(offsets=(-192, 0)), data, ERROR),
        ("offsets beyond the file", weight(offsets=(10**12, 10**12 + 192)), data, ERROR),
        ("offsets as text", weight(offsets=("0", "192")), data, ERROR),
        ("one offset", weight(offsets=(0,)), data, ERROR),
        ("overlap", weight() | {"x": _entry(offsets=(96, 288))}, data + data[:96], ERROR),
        ("hole", weight() | {"x": _entry(offsets=(256, 448))}, data + bytes(64) + data, ERROR),
        ("trailing bytes", weight(), data + bytes(64), ERROR),
        ("the same name twice", twice, data, ERROR),
        ("no dtype", {name: {"shape": [12, 4], "data_offsets": [0, 192]}}, data, ERROR),
        ("a list for an entry", {name: [1, 2, 3]}, data, ERROR),
        ("names with escapes", {"\x1b[2J\nFAKE: all fine": _entry()}, data, OK),
        ("a name of a megabyte", {"x" * 2**20: _entry()}, data, OK),
        ("fifty thousand names", many, data, ERROR),
        ("empty object", {}, b"", ERROR),
        ("only metadata", {"__metadata__": {}}, b"", ERROR),
    ):
        yield case(title, _safetensors_bytes(header, body), expect)
    for count in (0, 4, 8, 20, len(whole) - 1):
        yield case(f"first {count} bytes", whole[:count])
    lengths = {"2^63": 2**63, "2^64 - 1": 2**64 - 1, "0": 0, "1": 1, "100 MB": 10**8}
    for title, length in (lengths | {"beyond the file": 5000}).items():
        yield case(f"header length {title}", _safetensors_bytes(weight(), data, length))
    widths = {"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F4": 1, "C64": 8, "Q4": 1, "": 4}
    for dtype, width in widths.items():
        header = weight(dtype=dtype, offsets=(0, 48 * width))
        yield case(f"type {dtype or 'empty'}", _safetensors_bytes(header, bytes(48 * width)))


# ---- ONNX


# bytes that a node of a graph takes as Python's objects: the file names no tensor for it
_NODE = 200


def _onnx() -> Iterator[Case]:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def graph(nodes: list[Any], constants: dict[str, np.ndarray], output: str = "y") -> bytes:
        value = helper.make_tensor_value_info
        inputs, outputs = (
            value("x", TensorProto.FLOAT, [1, 4]),
            value(output, TensorProto.FLOAT, [1, 12]),
        )
        tensors = [numpy_helper.from_array(array, key) for key, array in constants.items()]
        made = helper.make_graph(nodes, "g", [inputs], [outputs], tensors)
        return helper.make_model(made).SerializeToString()

    node, file, layer = helper.make_node, _of("onnx", "a.onnx"), {"W": W.T.copy(), "b": B}

    def case(title: str, *nodes: Any, expect: str = ERROR, **constants: np.ndarray) -> Case:
        return file(title, graph(list(nodes), constants or layer), expect)

    def chain(*steps: str) -> list[Any]:
        """Nodes written as "Operation inputs > outputs"."""
        words = [[part.split() for part in step.split(">")] for step in steps]
        return [node(left[0], left[1:], right) for left, right in words]

    straight = chain("MatMul x W > m", "Add m b > a", "Softmax a > y")
    yield case("good", *straight, expect=OK)
    whole = graph(straight, layer)
    for share in (0.0, 0.1, 0.5, 0.95):
        yield file(f"cut at {share:.0%}", whole[: int(share * len(whole))])
    for number, position in enumerate(range(5, len(whole), max(1, len(whole) // 9))):
        spoilt = whole[:position] + b"\xff" * 12 + whole[position + 12 :]
        yield file(f"text written over at {number}", spoilt)
    yield file("of text", b"this is no protobuf " * 30)
    yield file("of zeros", bytes(1000))
    for title, steps in {
        "cycle of Identity into the output": (
            "Identity b2 > a2", "Identity a2 > b2", "Softmax b2 > y"
        ),
        "cycle of Softmax": ("Softmax q > p", "Softmax p > q", "Identity p > y"),
        "cycle through itself": ("Identity y > y",),
        "cycle of Identity as weight": ("Identity v > u", "Identity u > v", "MatMul x u > y"),
        "MatMul without inputs": ("MatMul > y",),
        "MatMul with one input": ("MatMul x > y",),
        "Softmax without inputs": ("Softmax > y",),
        "Softmax without outputs": ("MatMul x W > m", "Add m b > a", "Softmax a >"),
        "Constant without a value": ("Constant > k", "MatMul x k > y"),
        "Gemm without inputs": ("Gemm > y",),
        "no product": ("Relu x > y",),
        "no node": (),
        "a weight that is no constant": ("MatMul x x > y",),
    }.items():  # fmt: skip
        yield case(title, *chain(*steps))
    around = graph(chain("Transpose v > u", "Transpose u > v", "MatMul x u > y"), layer)
    yield Case(
        "onnx cycle of Transpose by name",
        ERROR,
        lambda folder: [*_file("a.onnx", around)(folder), "--weight", "u"],
    )
    loose = node("Constant", [], [], value=numpy_helper.from_array(W))
    yield case("Constant without outputs", loose, *straight, expect=OK)
    strange = node("Cast", ["W"], ["k"], to=999)
    yield case("Cast to a type that does not exist", strange, *chain("MatMul x k > y"))
    identities = [node("Identity", [f"n{i}"], [f"n{i + 1}"]) for i in range(200_000)]
    long = [*chain("MatMul x W > n0"), *identities, *chain("Identity n200000 > y")]
    title = "two hundred thousand Identities"
    yield replace(case(title, *long, expect=OK), declared=200_000 * _NODE)
    yield file("an output that nothing makes", graph(straight, layer, output="z"))
    yield case("a vector for a weight", *chain("MatMul x v > y"), v=W[0])
    yield case("NaN", *straight, W=np.full((4, 12), np.nan, np.float32), b=B)
    yield case("int8 codes for a weight", *chain("MatMul x W > y"), W=np.ones((4, 12), np.int8))
    for title, change in (
        ("negative dimensions", lambda tensor: tensor.dims.__setitem__(0, -4)),
        ("2^40 rows claimed", lambda tensor: tensor.dims.__setitem__(0, 2**40)),
        ("unknown data type", lambda tensor: setattr(tensor, "data_type", 77)),
    ):
        model = onnx.load_model_from_string(whole)
        change(model.graph.initializer[0])
        yield file(title, model.SerializeToString())
    places = {"missing": "gone.bin", "climbing": "../../../../etc/passwd"}
    for title, location in (places | {"absolute": "/etc/passwd"}).items():
        model = onnx.load_model_from_string(whole)
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.append(onnx.StringStringEntryProto(key="location", value=location))
        yield file(f"external data {title}", model.SerializeToString())
    red = node("MatMul", ["x", "\x1b[31mW\n"], ["y"])
    yield case("names with escapes", red, **{"\x1b[31mV\n": W})


# ---- PyTorch and pickles


def _torch() -> Iterator[Case]:
    try:
        import torch
    except ImportError:
        return

    def saved(title: str, content: Any, expect: str = ERROR) -> Case:
        def write(folder: Path) -> list[str]:
            torch.save(content, folder / "a.pt")
            return [str(folder / "a.pt")]

        return Case(f"torch {title}", expect, write)

    def head(title: str, weight: torch.Tensor, expect: str = ERROR) -> Case:
        return saved(title, {"lm_head.weight": weight}, expect)

    weight = torch.from_numpy(W.copy())
    yield head("good", weight, OK)
    buffer = io.BytesIO()
    torch.save({"lm_head.weight": weight}, buffer)
    whole = buffer.getvalue()
    for share in (0.1, 0.5, 0.9):
        yield _of("torch", "a.pt")(f"cut at {share:.0%}", whole[: int(share * len(whole))])
    with np.errstate(all="ignore"):
        yield head("sparse", weight.to_sparse())
    yield head("float8", weight.to(torch.float8_e4m3fn))
    yield head("complex", weight.to(torch.complex64))
    yield head("bool", weight > 0)
    yield head("int8", (weight * 9).to(torch.int8))
    yield head("bfloat16", weight.to(torch.bfloat16), OK)
    yield head("requires grad", weight.clone().requires_grad_(), OK)
    yield head("transposed view", weight.T.contiguous().T, OK)
    yield head("view of 2^36 rows over four numbers", torch.zeros(1, 4).expand(2**36, 4))
    yield head("meta tensor", torch.empty(12, 4, device="meta"))
    yield saved("integer keys", {1: weight, 2: weight})
    yield saved("a tensor alone", weight)
    yield saved("a list", [weight])
    yield saved("nothing", {})
    mixed = {"lm_head.weight": weight, "step": 5, "name": "x"}
    yield saved("a number among tensors", mixed, OK)


class _Evil:
    def __reduce__(self) -> tuple:
        import os

        return (os.system, ("touch owned-by-a-pickle",))


def _pickles() -> Iterator[Case]:
    evil, case = pickle.dumps({"lm_head.weight": _Evil()}), _of("pickle", "a.pkl")
    for suffix in (".pt", ".bin", ".pkl"):
        yield _of("pickle", f"a{suffix}")(f"that runs a command, {suffix}", evil)
    yield case("of a class", pickle.dumps({"W": Path("x")}))
    yield case("cut", pickle.dumps({"W": W})[:-30])
    yield case("of text", b"hello\n" * 20)
    yield case("nested", b"(" * 100_000 + b".")
    yield case("memory", b"\x80\x04\x8e" + struct.pack("<Q", 2**50) + b"x.")


# ---- Folders of a model


_NAMES = {
    "config": "config.json",
    "tokenizer": "tokenizer.json",
    "index": "model.safetensors.index.json",
    "model": "model.safetensors",
    "shard": "model-1.safetensors",
    "vocab": "vocab.json",
}


def _folders() -> Iterator[Case]:
    def folder(title: str, expect: str = ERROR, **files: Any) -> Case:
        """Files by their keys in `_NAMES`: bytes, or what JSON is to hold."""

        def write(place: Path) -> list[str]:
            (place / "m").mkdir()
            for key, content in files.items():
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                (place / "m" / _NAMES[key]).write_bytes(raw)
            return [str(place / "m")]

        return Case(f"folder {title}", expect, write)

    def mapped(**shards: Any) -> dict[str, Any]:
        return {"weight_map": {f"lm_head.{name}": shard for name, shard in shards.items()}}

    weights = _safetensors_bytes({"lm_head.weight": _entry()}, W.tobytes())
    shard = _NAMES["shard"]
    config = {"model_type": "llama", "hidden_size": 4, "vocab_size": 12}
    yield folder("good", OK, model=weights, config=config)
    yield folder("empty")
    yield folder("config nested too deeply", model=weights, config=_DEEP)
    yield folder("config no JSON", model=weights, config=b"{")
    yield folder("config a list", model=weights, config=[])
    yield folder("config empty", model=weights, config=b"")
    yield folder("model_type a list", OK, model=_with_norm(), config={"model_type": ["llama"]})
    yield folder("model_type a number", OK, model=_with_norm(), config={"model_type": 5})
    decoder: Any = {"type": "ByteLevel"}
    for _ in range(400):
        decoder = {"type": "Sequence", "decoders": [decoder]}
    vocabulary = {f"t{i}": i for i in range(12)}
    for title, tokenizer in (
        ("nested too deeply", _DEEP),
        ("decoder nested", {"model": {"vocab": vocabulary}, "decoder": decoder}),
        ("index Infinity", b'{"model": {"vocab": {"a": Infinity}}}'),
        ("index negative", {"model": {"vocab": {"a": -5}}}),
        ("index 2^60", {"model": {"vocab": {"a": 2**60}}}),
        ("index text", {"model": {"vocab": {"a": "b"}}}),
        ("a list", [1]),
    ):
        yield folder(f"tokenizer {title}", model=weights, config=config, tokenizer=tokenizer)
    escapes = {f"\x1b[3{i}m\n": i for i in range(12)}
    yield folder("vocabulary with escapes", OK, model=weights, vocab=escapes)
    both = mapped(weight=shard, bias=shard)
    yield folder("index names a tensor that the shard lacks", index=both, shard=weights)
    yield folder("index names a missing shard", index=mapped(weight=shard))
    yield folder("index names a shard elsewhere", index=mapped(weight="../../etc/passwd"))
    yield folder("index names an absolute shard", index=mapped(weight="/etc/passwd"))
    yield folder("index without a map", index={}, shard=weights)
    yield folder("index a map of numbers", index=mapped(weight=5), shard=weights)
    yield folder("index nested too deeply", index=_DEEP, shard=weights)
    yield folder("index good", OK, index=mapped(weight=shard), shard=weights)


def _with_norm() -> bytes:
    norm = _entry(shape=(4,), offsets=(192, 208))
    header = {"lm_head.weight": _entry(), "model.norm.weight": norm}
    return _safetensors_bytes(header, W.tobytes() + np.ones(4, np.float32).tobytes())


def _llama2c() -> Iterator[Case]:
    for title, header in (
        ("negative sizes", (-1,) * 7),
        ("huge sizes", (2**31 - 1,) * 7),
        ("zeros", (0,) * 7),
        ("cut", (4, 8, 1, 1, 1, 12, 8)),
    ):
        yield _of("llama2.c", "a.bin")(title, struct.pack("<7i", *header) + bytes(100))


# ---- Vocabulary, options, folders for results


def _tokens() -> Iterator[Case]:
    def tokens(title: str, content: bytes, expect: str = ERROR, name: str = "t.txt") -> Case:
        def write(folder: Path) -> list[str]:
            (folder / name).write_bytes(content)
            return [*good(folder), "--tokens", str(folder / name)]

        return Case(f"tokens {title}", expect, write)

    missing = ["NA", "null", "nan", "None", "N/A", "", "-", "NaN", "inf", "true", "#N/A", "0"]
    yield tokens("good", "\n".join(f"t{i}" for i in range(12)).encode(), OK)
    yield tokens("too few", b"a\nb\n")
    yield tokens("too many", ("x\n" * 50).encode())
    yield tokens("empty", b"")
    yield tokens("no UTF-8", b"\xff\xfe\n" * 12)
    yield tokens("of formulas", "\n".join(f'=cmd{i}|"a",b' for i in range(12)).encode(), OK)
    yield tokens("of missing values", "\n".join(missing).encode(), OK)
    yield tokens("a JSON file nested too deeply", _DEEP, name="tokenizer.json")
    for title, name in (("a file that is not there", "gone.txt"), ("a folder", "")):
        yield Case(
            f"tokens from {title}",
            ERROR,
            lambda folder, name=name: [*good(folder), "--tokens", str(folder / name)],
        )


def _options() -> Iterator[Case]:
    def options(*more: str, expect: str = ERROR) -> Case:
        title = "options " + " ".join(more or ("none",))
        return Case(title, expect, lambda folder: [*good(folder), *more])

    yield options(expect=OK)
    for bound in ("1e308", "1e-165", "1e160"):
        yield options("--bound", bound, expect=OK)
        yield options("--features", "ball", "--bound", bound, expect=OK)
    for words in ("--low 0", "--classes 0-11,0-11", "--block 1"):
        yield options(*words.split(), expect=OK)
    digits = "9" * 5000
    for option, values in {
        "--bound": ("0", "-1", "nan", "inf", "1e400", "1e-320", "text", ""),
        "--features": ("norm", "cube"),
        "--low": ("200", "nan"),
        "--jobs": ("0", "-7", "two", "1e9", digits),
        "--backend": ("threads",),
        "--device": ("toaster",),
        "--seed": ("x", "-1"),
        "--script": ("ELVISH", "LATIN"),
        "--weight": ("gone", "b", "\x1b[31mred"),
        "--bias": ("gone", "W"),
        "--out": ("",),
        "--classes": (digits, "0-" + digits, "12", "3-1", "-1", "a", "\u0663", ","),
        "--block": ("0", "-1", "text", digits),
        "--fail-on": ("x", "unargmaxable=", "unargmaxable=-1", "argmaxable=0"),
    }.items():
        for value in values:
            yield options(option, value)
    for words in (
        "--features ball --low -1",
        "--features unbounded --bound 5",
        "--features unbounded --low 0",
        "--jobs -1 --backend dask",
        "--backend dask --scheduler nonsense",
        "--nonsense",
        f"--fail-on unargmaxable={digits}",
    ):
        yield options(*words.split())

    def given(option: str, name: str, content: bytes | None, *more: str, expect: str) -> Case:
        def write(folder: Path) -> list[str]:
            if content is not None:
                (folder / "given").write_bytes(content)
            return [*good(folder), option, str(folder / "given"), *more]

        return Case(f"options {option} {name}", expect, write)

    for name, content in (
        ("missing", None),
        ("of text", b"hello"),
        ("empty", b""),
        ("of zeros", bytes(500)),
        ("of objects", _npy_header(_described("'|O'", "(3, 4)"))),
        ("of a NaN", _npy(np.full((3, 4), np.nan))),
        ("of other features", _npy(np.zeros((3, 5)))),
        ("claiming 2^60 rows", _npy_header(_described("'<f8'", f"({2**60}, 4)"))),
    ):
        yield given("--inputs", name, content, expect=ERROR)
    yield given("--inputs", "as they should be", _npy(np.zeros((3, 4))), expect=OK)
    only = ("--fail-on", "undecided")
    yield given("--expected", "missing", None, *only, expect=ERROR)
    yield given("--expected", "no UTF-8", b"\xff\xfe", *only, expect=ERROR)
    yield given("--expected", "without --fail-on", b"0\n", expect=ERROR)
    yield given("--expected", "as it should be", b"0\n", *only, expect=OK)


def _out() -> Iterator[Case]:
    def out(title: str, prepare: Callable[[Path], Any], expect: str) -> Case:
        def write(folder: Path) -> list[str]:
            model = good(folder)
            prepare(folder / "results")
            return [*model, "--out", str(folder / "results")]

        return Case(f"out {title}", expect, write)

    def resumed(title: str, change: Callable[[Path], Any]) -> Case:
        def prepare(place: Path) -> None:
            from softgeom.bottleneck import SoftmaxLayer, scan

            place.mkdir()
            scan(SoftmaxLayer(W, B), checkpoint=place / "blocks")
            for block in (place / "blocks").rglob("*.npz"):
                change(block)

        return out(title, prepare, OK)

    yield out("is a file", lambda place: place.write_text("x"), ERROR)
    yield resumed("resumed", lambda block: None)
    yield resumed("block cut", lambda block: block.write_bytes(block.read_bytes()[:100]))
    yield resumed("block empty", lambda block: block.write_bytes(b""))
    yield resumed("block flipped", lambda block: block.write_bytes(_flip(block.read_bytes(), 200)))
    yield resumed("block of text", lambda block: block.write_text("hello"))
    yield resumed("block is a folder", lambda block: (block.unlink(), block.mkdir()))
    yield out("blocks is a file", lambda p: (p.mkdir(), (p / "blocks").write_text("x")), ERROR)
    yield out("verdicts is a folder", lambda p: (p / "verdicts.csv").mkdir(parents=True), ERROR)


def _paths() -> Iterator[Case]:
    def named(name: str) -> Case:
        def write(folder: Path) -> list[str]:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_npz_bytes(W=W, b=B))
            return [str(path)]

        return Case(f"path {name!r}", OK, write)

    for name in ("with space", "quote'", 'double"', "$(touch x)", "semi;colon", "ünïcødé"):
        yield named(f"{name}.npz")
    for name in ("new\nline", "-dash", "a/b/c", "%s%n"):
        yield named(f"{name}.npz")
    yield Case("path of nothing", ERROR, lambda folder: [str(folder / "gone.npz")])
    yield Case("path of a device", ERROR, lambda folder: ["/dev/null"])
    yield Case("path empty", ERROR, lambda folder: [""])
    yield Case("path with a null byte", ERROR, lambda folder: [str(folder / "a\x00b.npz")])
    yield Case("path of unknown kind", ERROR, _file("a.xyz", b"12345"))
    yield Case("path without a suffix", ERROR, _file("model", b"12345"))
    yield Case("path too long", ERROR, lambda folder: ["x" * 5000])

    def loop(folder: Path) -> list[str]:
        (folder / "a.npz").symlink_to(folder / "a.npz")
        return [str(folder / "a.npz")]

    yield Case("path of a link to itself", ERROR, loop)

    def pipe(folder: Path) -> list[str]:
        import os

        os.mkfifo(folder / "a.npz")
        return [str(folder / "a.npz")]

    yield Case("path of a pipe that nobody writes to", ERROR, pipe)
