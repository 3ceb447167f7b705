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
    for kind in (
        _npz,
        _npy_headers,
        _weights,
        _safetensors,
        _onnx,
        _torch,
        _pickles,
        _folders,
        _llama2c,
        _tokens,
        _options,
        _out,
        _paths,
    ):
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
# ----------------------------------------------------------------------------


def _layer() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((12, 4)).astype(np.float32), rng.standard_normal(12).astype(
        np.float32
    )


W, B = _layer()


def _npz_bytes(compressed: bool = False, **arrays: Any) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def _file(name: str, content: bytes) -> Callable[[Path], list[str]]:
    def write(folder: Path) -> list[str]:
        (folder / name).write_bytes(content)
        return [str(folder / name)]

    return write


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


def _flip(content: bytes, position: int, mask: int = 0xFF) -> bytes:
    return content[:position] + bytes([content[position] ^ mask]) + content[position + 1 :]


def _replace_all(content: bytes, old: bytes, new: bytes) -> bytes:
    assert old in content
    return content.replace(old, new)


# ---- npz


def _npz() -> Iterator[Case]:
    good, packed = _npz_bytes(W=W, b=B), _npz_bytes(True, W=W, b=B)
    yield Case("npz good", OK, _file("a.npz", good))
    yield Case("npz compressed", OK, _file("a.npz", packed))
    for share in (0, 0.01, 0.2, 0.5, 0.9, 0.99):
        yield Case(f"npz cut at {share:.0%}", ERROR, _file("a.npz", good[: int(share * len(good))]))
    yield Case("npz without its last byte", ERROR, _file("a.npz", good[:-1]))
    yield Case("npz of zeros", ERROR, _file("a.npz", bytes(1000)))
    yield Case("npz of text", ERROR, _file("a.npz", b"hello world\n" * 50))
    yield Case(
        "npz a bit flipped in the data",
        ERROR,
        _file("a.npz", _flip(good, good.index(W.tobytes()[:16]) + 3, 1)),
    )
    central = good.index(b"PK\x01\x02")
    yield Case(
        "npz a bit flipped in the directory's checksum",
        ERROR,
        _file("a.npz", _flip(good, central + 16, 1)),
    )
    yield Case(
        "npz a bit flipped in the directory's size",
        ERROR,
        _file("a.npz", _flip(good, central + 24, 4)),
    )
    encrypted = bytearray(good)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = bytes(encrypted).find(signature)
        while at >= 0:
            encrypted[at + offset] |= 1
            at = bytes(encrypted).find(signature, at + 1)
    yield Case("npz encrypted", ERROR, _file("a.npz", bytes(encrypted)))
    foreign = bytearray(good)
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = bytes(foreign).find(signature)
        while at >= 0:
            foreign[at + offset] = 99
            at = bytes(foreign).find(signature, at + 1)
    yield Case("npz foreign compression", ERROR, _file("a.npz", bytes(foreign)))
    for name, method in (("LZMA", zipfile.ZIP_LZMA), ("BZIP2", zipfile.ZIP_BZIP2)):
        archive = bytearray(_archive(("W.npy", _npy(W)), method=method))
        archive[60:90] = b"\x5a" * 30
        yield Case(f"npz {name} garbage", ERROR, _file("a.npz", bytes(archive)))
    broken = bytearray(packed)
    broken[60:80] = b"\xaa" * 20
    yield Case("npz corrupt deflate", ERROR, _file("a.npz", bytes(broken)))

    yield Case(
        "npz bomb in a member that nobody needs",
        OK,
        _bomb("unneeded.npy", ("W.npy", W), ("b.npy", B)),
    )
    yield Case("npz bomb for a bias", ERROR, _bomb("b.npy", ("W.npy", W)))
    yield Case("npz member without .npy", ERROR, _file("a.npz", _archive(("W", b"not numbers"))))
    yield Case("npz no member at all", ERROR, _file("a.npz", _archive()))
    yield Case("npz W twice", ERROR, _file("a.npz", _archive_twice()))
    yield Case(
        "npz names with escapes",
        OK,
        _file("a.npz", _archive(("\x1b[31mred\nsecond line.npy", _npy(W)))),
    )
    yield Case("npz a name that climbs", OK, _file("a.npz", _archive(("../../../W.npy", _npy(W)))))
    yield Case("npz is one npy", ERROR, _file("a.npz", _npy(W)))
    yield Case(
        "npz objects",
        ERROR,
        _file("a.npz", _npz_bytes(W=np.array([[object()]], dtype=object).astype(str))),
    )
    yield Case(
        "npz 0-d tokens", ERROR, _file("a.npz", _npz_bytes(W=W, b=B, tokens=np.array("abc")))
    )
    yield Case(
        "npz integer 0-d tokens", ERROR, _file("a.npz", _npz_bytes(W=W, b=B, tokens=np.array(5)))
    )
    yield Case(
        "npz 2-d tokens",
        ERROR,
        _file("a.npz", _npz_bytes(W=W, b=B, tokens=np.array([["a", "b"]] * 12))),
    )
    yield Case(
        "npz too few tokens",
        ERROR,
        _file("a.npz", _npz_bytes(W=W, b=B, tokens=np.array(["a"] * 3))),
    )
    spoilt = bytearray(
        _npz_bytes(True, W=W, b=B, tokens=np.array([f"t{i}" * 50 for i in range(12)]))
    )
    at = bytes(spoilt).index(b"tokens.npy") + 30
    spoilt[at : at + 20] = b"\x99" * 20
    yield Case("npz tokens in corrupt deflate", ERROR, _file("a.npz", bytes(spoilt)))
    yield Case(
        "npz tokens as they should be",
        OK,
        _file("a.npz", _npz_bytes(W=W, b=B, tokens=np.array([f"t{i}" for i in range(12)]))),
    )
    yield Case(
        "npz tokens of control characters",
        OK,
        _file(
            "a.npz", _npz_bytes(W=W, b=B, tokens=np.array([f"\x1b[3{i}m\r\n" for i in range(12)]))
        ),
    )


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
    def archive(name: str, header: str, body: bytes = b"", expect: str = ERROR) -> Case:
        return Case(
            f"npy header {name}",
            expect,
            _file("a.npz", _archive(("W.npy", _npy_header(header, body)))),
        )

    yield archive(
        "claims 2^60 x 4 without data",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 4), }",
    )
    yield archive(
        "claims 4 TB without data",
        "{'descr': '<f2', 'fortran_order': False, 'shape': (2147483648, 1024), }",
    )
    yield archive(
        "claims more than there is",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (120, 4), }",
        W.tobytes(),
    )
    yield archive(
        "claims less than there is",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 4), }",
        W.tobytes(),
    )
    yield archive(
        "negative", "{'descr': '<f4', 'fortran_order': False, 'shape': (-12, 4), }", W.tobytes()
    )
    yield archive("unclosed", "{'descr': '<f4', 'fortran_order': False, 'shape': \xb312, 4), }")
    yield archive("no rows", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }")
    yield archive("no columns", "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 0), }")
    yield archive(
        "nested parentheses",
        "{'descr': '<f4', 'fortran_order': False, 'shape': " + "(" * 3000 + ")" * 3000 + "}",
    )
    yield archive("a call", "__import__('os').system('touch /tmp/owned')")
    yield archive("not a dictionary", "[1, 2, 3]")
    yield archive(
        "unknown type", "{'descr': '<z9', 'fortran_order': False, 'shape': (12, 4), }", W.tobytes()
    )
    yield archive(
        "structured",
        "{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (12, 2), }",
        W.tobytes(),
    )
    yield archive(
        "objects",
        "{'descr': '|O', 'fortran_order': False, 'shape': (12, 4), }",
        pickle.dumps([1] * 48),
    )
    yield archive(
        "float shape", "{'descr': '<f4', 'fortran_order': False, 'shape': (12.9, 4), }", W.tobytes()
    )
    yield archive(
        "column order",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (12, 4), }",
        W.tobytes(),
        OK,
    )


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
    yield layer(
        "int64 beyond float64", W=np.array([[2**53, 1], [2**53 + 1, 1], [0, 0]]), b=np.zeros(3)
    )
    yield layer(
        "long double beyond float64",
        W=np.array([[1, 1], [2, 3]], dtype=np.longdouble) + np.longdouble(2) ** -60,
    )
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
        yield layer(
            f"float64 scaled by {scale:g}", OK, W=W.astype(float) * scale, b=B.astype(float) * scale
        )
        yield layer(
            f"rows alone scaled by {scale:g}", OK, W=W.astype(float) * scale, b=B.astype(float)
        )
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
    name, data = "lm_head.weight", W.tobytes()

    def case(
        title: str, header: Any, body: bytes = data, expect: str = ERROR, length: int | None = None
    ) -> Case:
        return Case(
            f"safetensors {title}",
            expect,
            _file("a.safetensors", _safetensors_bytes(header, body, length)),
        )

    yield case("good", {name: _entry()}, expect=OK)
    yield case("with metadata", {"__metadata__": {"a": "b"}, name: _entry()}, expect=OK)
    yield case(
        "bfloat16",
        {name: _entry("BF16", offsets=(0, 96))},
        (W.view(np.uint32) >> 16).astype(np.uint16).tobytes(),
        OK,
    )
    whole = _safetensors_bytes({name: _entry()}, data)
    for count in (0, 4, 8, 20, len(whole) - 1):
        yield Case(f"safetensors first {count} bytes", ERROR, _file("a.safetensors", whole[:count]))
    for title, length in (
        ("2^63", 2**63),
        ("2^64 - 1", 2**64 - 1),
        ("0", 0),
        ("1", 1),
        ("100 MB", 10**8),
        ("beyond the file", 5000),
    ):
        yield case(f"header length {title}", {name: _entry()}, length=length)
    yield case("nested too deeply", b"[" * 100_000 + b"]" * 100_000)
    yield case("nested objects", b'{"a":' * 50_000 + b"1" + b"}" * 50_000)
    yield case("a list", b"[1, 2]")
    yield case("no JSON", b"{lm_head: 1}")
    yield case("bad UTF-8", b'{"\xff\xfe": 1}')
    yield case(
        "offsets Infinity",
        b'{"lm_head.weight": {"dtype": "F32", "shape": [12, 4], "data_offsets": [0, Infinity]}}',
    )
    yield case(
        "shape 1e400",
        b'{"lm_head.weight": {"dtype": "F32", "shape": [1e400, 4], "data_offsets": [0, 192]}}',
    )
    yield case(
        "shape NaN",
        b'{"lm_head.weight": {"dtype": "F32", "shape": [NaN, 4], "data_offsets": [0, 192]}}',
    )
    yield case("float shape", {name: _entry(shape=(12.9, 4))})
    yield case("text shape", {name: _entry(shape=("12", "4"))})
    yield case("true for a shape", {name: _entry(shape=(True, 48))})
    yield case("negative shape", {name: _entry(shape=(-12, -4))})
    yield case("zero shape", {name: _entry(shape=(0, 4), offsets=(0, 0))}, b"")
    yield case("huge shape", {name: _entry(shape=(2**40, 2**20))})
    yield case("a shape of a thousand axes", {name: _entry(shape=[1] * 1000 + [12, 4])})
    yield case("offsets backwards", {name: _entry(offsets=(192, 0))})
    yield case("offsets negative", {name: _entry(offsets=(-192, 0))})
    yield case("offsets beyond the file", {name: _entry(offsets=(10**12, 10**12 + 192))})
    yield case("offsets as text", {name: _entry(offsets=("0", "192"))})
    yield case("one offset", {name: _entry(offsets=(0,))})
    yield case("overlap", {name: _entry(), "x": _entry(offsets=(96, 288))}, data + data[:96])
    yield case("hole", {name: _entry(), "x": _entry(offsets=(256, 448))}, data + bytes(64) + data)
    yield case("trailing bytes", {name: _entry()}, data + bytes(64))
    twice = (
        b'{"lm_head.weight": {"dtype": "F32", "shape": [12, 4], "data_offsets": [0, 192]}, '
        b'"lm_head.weight": {"dtype": "F32", "shape": [6, 8], "data_offsets": [0, 192]}}'
    )
    yield case("the same name twice", twice)
    for dtype, width in (
        ("I8", 1),
        ("U8", 1),
        ("BOOL", 1),
        ("F8_E4M3", 1),
        ("F4", 1),
        ("C64", 8),
        ("Q4", 1),
        ("", 4),
    ):
        yield case(
            f"type {dtype or 'empty'}",
            {name: _entry(dtype, offsets=(0, 48 * width))},
            bytes(48 * width),
        )
    yield case("no dtype", {name: {"shape": [12, 4], "data_offsets": [0, 192]}})
    yield case("a list for an entry", {name: [1, 2, 3]})
    yield case("names with escapes", {"\x1b[2J\nFAKE: all fine": _entry()}, expect=OK)
    yield case("a name of a megabyte", {"x" * 2**20: _entry()}, expect=OK)
    yield case("fifty thousand names", {f"t{i}": _entry(offsets=(0, 192)) for i in range(50_000)})
    yield case("empty object", {}, b"")
    yield case("only metadata", {"__metadata__": {}}, b"")


# ---- ONNX


# bytes that a node of a graph takes as Python's objects: the file names no tensor for it
_NODE = 200


def _onnx() -> Iterator[Case]:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def graph(
        nodes: list[Any],
        constants: dict[str, np.ndarray] | None = None,
        output: str = "y",
        shape: Any = (1, 12),
    ) -> bytes:
        constants = {"W": W.T.copy(), "b": B} if constants is None else constants
        model = helper.make_model(
            helper.make_graph(
                nodes,
                "g",
                [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
                [helper.make_tensor_value_info(output, TensorProto.FLOAT, list(shape))],
                [numpy_helper.from_array(array, key) for key, array in constants.items()],
            )
        )
        return model.SerializeToString()

    def case(
        title: str,
        nodes: list[Any],
        expect: str = ERROR,
        constants: Any = None,
        more: tuple[str, ...] = (),
        declared: int = 0,
        **options: Any,
    ) -> Case:
        content = graph(nodes, constants, **options)
        return Case(
            f"onnx {title}",
            expect,
            lambda folder: [*_file("a.onnx", content)(folder), *more],
            declared,
        )

    node = helper.make_node
    straight = [
        node("MatMul", ["x", "W"], ["m"]),
        node("Add", ["m", "b"], ["a"]),
        node("Softmax", ["a"], ["y"]),
    ]
    yield case("good", straight, OK)
    whole = graph(straight)
    for share in (0.0, 0.1, 0.5, 0.95):
        yield Case(
            f"onnx cut at {share:.0%}", ERROR, _file("a.onnx", whole[: int(share * len(whole))])
        )
    for number, position in enumerate(range(5, len(whole), max(1, len(whole) // 9))):
        yield Case(
            f"onnx text written over at {number}",
            ERROR,
            _file("a.onnx", whole[:position] + b"\xff" * 12 + whole[position + 12 :]),
        )
    yield Case("onnx of text", ERROR, _file("a.onnx", b"this is no protobuf " * 30))
    yield Case("onnx of zeros", ERROR, _file("a.onnx", bytes(1000)))
    yield case(
        "cycle of Identity into the output",
        [
            node("Identity", ["b2"], ["a2"]),
            node("Identity", ["a2"], ["b2"]),
            node("Softmax", ["b2"], ["y"]),
        ],
    )
    yield case(
        "cycle of Softmax",
        [
            node("Softmax", ["q"], ["p"]),
            node("Softmax", ["p"], ["q"]),
            node("Identity", ["p"], ["y"]),
        ],
    )
    yield case("cycle through itself", [node("Identity", ["y"], ["y"])])
    yield case(
        "cycle of Identity as weight",
        [
            node("Identity", ["v"], ["u"]),
            node("Identity", ["u"], ["v"]),
            node("MatMul", ["x", "u"], ["y"]),
        ],
    )
    yield case(
        "cycle of Transpose by name",
        [
            node("Transpose", ["v"], ["u"]),
            node("Transpose", ["u"], ["v"]),
            node("MatMul", ["x", "u"], ["y"]),
        ],
        more=("--weight", "u"),
    )
    yield case("MatMul without inputs", [node("MatMul", [], ["y"])])
    yield case("MatMul with one input", [node("MatMul", ["x"], ["y"])])
    yield case("Softmax without inputs", [node("Softmax", [], ["y"])])
    yield case("Softmax without outputs", [*straight[:2], node("Softmax", ["a"], [])])
    yield case(
        "Constant without outputs",
        [node("Constant", [], [], value=numpy_helper.from_array(W)), *straight],
        OK,
    )
    yield case(
        "Constant without a value", [node("Constant", [], ["k"]), node("MatMul", ["x", "k"], ["y"])]
    )
    yield case(
        "Cast to a type that does not exist",
        [node("Cast", ["W"], ["k"], to=999), node("MatMul", ["x", "k"], ["y"])],
    )
    yield case("Gemm without inputs", [node("Gemm", [], ["y"])])
    yield case(
        "two hundred thousand Identities",
        [
            node("MatMul", ["x", "W"], ["n0"]),
            *(node("Identity", [f"n{i}"], [f"n{i + 1}"]) for i in range(200_000)),
            node("Identity", ["n200000"], ["y"]),
        ],
        OK,
        declared=200_000 * _NODE,
    )
    yield case("no product", [node("Relu", ["x"], ["y"])])
    yield case("no node", [])
    yield case("an output that nothing makes", straight, output="z")
    yield case("a weight that is no constant", [node("MatMul", ["x", "x"], ["y"])])
    yield case("a vector for a weight", [node("MatMul", ["x", "v"], ["y"])], constants={"v": W[0]})
    yield case("NaN", straight, constants={"W": np.full((4, 12), np.nan, np.float32), "b": B})
    yield case(
        "int8 codes for a weight",
        [node("MatMul", ["x", "W"], ["y"])],
        constants={"W": np.ones((4, 12), np.int8)},
    )
    negative = onnx.load_model_from_string(whole)
    negative.graph.initializer[0].dims[0] = -4
    yield Case("onnx negative dimensions", ERROR, _file("a.onnx", negative.SerializeToString()))
    larger = onnx.load_model_from_string(whole)
    larger.graph.initializer[0].dims[0] = 2**40
    yield Case("onnx 2^40 rows claimed", ERROR, _file("a.onnx", larger.SerializeToString()))
    typeless = onnx.load_model_from_string(whole)
    typeless.graph.initializer[0].data_type = 77
    yield Case("onnx unknown data type", ERROR, _file("a.onnx", typeless.SerializeToString()))
    for title, location in (
        ("missing", "gone.bin"),
        ("climbing", "../../../../etc/passwd"),
        ("absolute", "/etc/passwd"),
    ):
        outside = onnx.load_model_from_string(whole)
        tensor = outside.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.append(onnx.StringStringEntryProto(key="location", value=location))
        yield Case(
            f"onnx external data {title}", ERROR, _file("a.onnx", outside.SerializeToString())
        )
    yield case(
        "names with escapes",
        [node("MatMul", ["x", "\x1b[31mW\n"], ["y"])],
        constants={"\x1b[31mV\n": W},
    )


# ---- PyTorch and pickles


def _torch() -> Iterator[Case]:
    try:
        import torch
    except ImportError:
        return

    def saved(content: Any, suffix: str = ".pt") -> Callable[[Path], list[str]]:
        def write(folder: Path) -> list[str]:
            torch.save(content, folder / f"a{suffix}")
            return [str(folder / f"a{suffix}")]

        return write

    weight = torch.from_numpy(W.copy())
    yield Case("torch good", OK, saved({"lm_head.weight": weight}))
    buffer = io.BytesIO()
    torch.save({"lm_head.weight": weight}, buffer)
    for share in (0.1, 0.5, 0.9):
        yield Case(
            f"torch cut at {share:.0%}",
            ERROR,
            _file("a.pt", buffer.getvalue()[: int(share * len(buffer.getvalue()))]),
        )
    with np.errstate(all="ignore"):
        yield Case("torch sparse", ERROR, saved({"lm_head.weight": weight.to_sparse()}))
    yield Case("torch float8", ERROR, saved({"lm_head.weight": weight.to(torch.float8_e4m3fn)}))
    yield Case("torch complex", ERROR, saved({"lm_head.weight": weight.to(torch.complex64)}))
    yield Case("torch bool", ERROR, saved({"lm_head.weight": weight > 0}))
    yield Case("torch int8", ERROR, saved({"lm_head.weight": (weight * 9).to(torch.int8)}))
    yield Case("torch bfloat16", OK, saved({"lm_head.weight": weight.to(torch.bfloat16)}))
    yield Case(
        "torch requires grad", OK, saved({"lm_head.weight": weight.clone().requires_grad_()})
    )
    yield Case("torch transposed view", OK, saved({"lm_head.weight": weight.T.contiguous().T}))
    yield Case(
        "torch view of 2^36 rows over four numbers",
        ERROR,
        saved({"lm_head.weight": torch.zeros(1, 4).expand(2**36, 4)}),
    )
    yield Case(
        "torch meta tensor", ERROR, saved({"lm_head.weight": torch.empty(12, 4, device="meta")})
    )
    yield Case("torch integer keys", ERROR, saved({1: weight, 2: weight}))
    yield Case("torch a tensor alone", ERROR, saved(weight))
    yield Case("torch a list", ERROR, saved([weight]))
    yield Case("torch nothing", ERROR, saved({}))
    yield Case(
        "torch a number among tensors",
        OK,
        saved({"lm_head.weight": weight, "step": 5, "name": "x"}),
    )


class _Evil:
    def __reduce__(self) -> tuple:
        import os

        return (os.system, ("touch owned-by-a-pickle",))


def _pickles() -> Iterator[Case]:
    for suffix in (".pt", ".bin", ".pkl"):
        yield Case(
            f"pickle that runs a command, {suffix}",
            ERROR,
            _file(f"a{suffix}", pickle.dumps({"lm_head.weight": _Evil()})),
        )
    yield Case("pickle of a class", ERROR, _file("a.pkl", pickle.dumps({"W": Path("x")})))
    yield Case("pickle cut", ERROR, _file("a.pkl", pickle.dumps({"W": W})[:-30]))
    yield Case("pickle of text", ERROR, _file("a.pkl", b"hello\n" * 20))
    yield Case("pickle nested", ERROR, _file("a.pkl", b"(" * 100_000 + b"."))
    yield Case(
        "pickle memory", ERROR, _file("a.pkl", b"\x80\x04\x8e" + struct.pack("<Q", 2**50) + b"x.")
    )


# ---- Folders of a model


def _folders() -> Iterator[Case]:
    weights = _safetensors_bytes({"lm_head.weight": _entry()}, W.tobytes())
    index = json.dumps({"weight_map": {"lm_head.weight": "model-1.safetensors"}}).encode()

    def folder(title: str, expect: str = ERROR, **files: bytes) -> Case:
        names = {
            "config": "config.json",
            "tokenizer": "tokenizer.json",
            "index": "model.safetensors.index.json",
            "model": "model.safetensors",
            "shard": "model-1.safetensors",
            "vocab": "vocab.json",
        }

        def write(place: Path) -> list[str]:
            (place / "m").mkdir()
            for key, content in files.items():
                (place / "m" / names[key]).write_bytes(content)
            return [str(place / "m")]

        return Case(f"folder {title}", expect, write)

    deep = b"[" * 100_000 + b"]" * 100_000
    config = json.dumps({"model_type": "llama", "hidden_size": 4, "vocab_size": 12}).encode()
    yield folder("good", OK, model=weights, config=config)
    yield folder("empty")
    yield folder("config nested too deeply", model=weights, config=deep)
    yield folder("config no JSON", model=weights, config=b"{")
    yield folder("config a list", model=weights, config=b"[]")
    yield folder("config empty", model=weights, config=b"")
    yield folder(
        "model_type a list",
        model=_with_norm(),
        config=json.dumps({"model_type": ["llama"]}).encode(),
        expect=OK,
    )
    yield folder(
        "model_type a number", OK, model=_with_norm(), config=json.dumps({"model_type": 5}).encode()
    )
    yield folder("tokenizer nested too deeply", model=weights, config=config, tokenizer=deep)
    decoder: Any = {"type": "ByteLevel"}
    for _ in range(400):
        decoder = {"type": "Sequence", "decoders": [decoder]}
    vocabulary = {f"t{i}": i for i in range(12)}
    yield folder(
        "tokenizer decoder nested",
        ERROR,
        model=weights,
        config=config,
        tokenizer=json.dumps({"model": {"vocab": vocabulary}, "decoder": decoder}).encode(),
    )
    yield folder(
        "tokenizer index Infinity",
        model=weights,
        config=config,
        tokenizer=b'{"model": {"vocab": {"a": Infinity}}}',
    )
    yield folder(
        "tokenizer index negative",
        model=weights,
        config=config,
        tokenizer=b'{"model": {"vocab": {"a": -5}}}',
    )
    yield folder(
        "tokenizer index 2^60",
        model=weights,
        config=config,
        tokenizer=b'{"model": {"vocab": {"a": 1152921504606846976}}}',
    )
    yield folder(
        "tokenizer index text",
        model=weights,
        config=config,
        tokenizer=b'{"model": {"vocab": {"a": "b"}}}',
    )
    yield folder("tokenizer a list", model=weights, config=config, tokenizer=b"[1]")
    yield folder(
        "vocabulary with escapes",
        OK,
        model=weights,
        vocab=json.dumps({f"\x1b[3{i}m\n": i for i in range(12)}).encode(),
    )
    yield folder(
        "index names a tensor that the shard lacks",
        index=json.dumps(
            {
                "weight_map": {
                    "lm_head.weight": "model-1.safetensors",
                    "lm_head.bias": "model-1.safetensors",
                }
            }
        ).encode(),
        shard=weights,
    )
    yield folder("index names a missing shard", index=index)
    yield folder(
        "index names a shard elsewhere",
        index=json.dumps({"weight_map": {"lm_head.weight": "../../etc/passwd"}}).encode(),
    )
    yield folder(
        "index names an absolute shard",
        index=json.dumps({"weight_map": {"lm_head.weight": "/etc/passwd"}}).encode(),
    )
    yield folder("index without a map", index=b"{}", shard=weights)
    yield folder(
        "index a map of numbers",
        index=json.dumps({"weight_map": {"lm_head.weight": 5}}).encode(),
        shard=weights,
    )
    yield folder("index nested too deeply", index=deep, shard=weights)
    yield folder("index good", OK, index=index, shard=weights)


def _with_norm() -> bytes:
    norm = np.ones(4, np.float32)
    header = {
        "lm_head.weight": _entry(),
        "model.norm.weight": _entry(shape=(4,), offsets=(192, 208)),
    }
    return _safetensors_bytes(header, W.tobytes() + norm.tobytes())


def _llama2c() -> Iterator[Case]:
    for title, header in (
        ("negative sizes", (-1,) * 7),
        ("huge sizes", (2**31 - 1,) * 7),
        ("zeros", (0,) * 7),
        ("cut", (4, 8, 1, 1, 1, 12, 8)),
    ):
        yield Case(
            f"llama2.c {title}", ERROR, _file("a.bin", struct.pack("<7i", *header) + bytes(100))
        )


# ---- Vocabulary, options, folders for results
# ------------------------------------------------------------------------------


def _good(folder: Path) -> str:
    return good(folder)[0]


def _tokens() -> Iterator[Case]:
    def tokens(title: str, content: bytes, expect: str = ERROR, name: str = "t.txt") -> Case:
        def write(folder: Path) -> list[str]:
            (folder / name).write_bytes(content)
            return [_good(folder), "--tokens", str(folder / name)]

        return Case(f"tokens {title}", expect, write)

    lines = "\n".join(f"t{i}" for i in range(12))
    yield tokens("good", lines.encode(), OK)
    yield tokens("too few", b"a\nb\n")
    yield tokens("too many", ("x\n" * 50).encode())
    yield tokens("empty", b"")
    yield tokens("no UTF-8", b"\xff\xfe\n" * 12)
    yield tokens("of formulas", "\n".join(f'=cmd{i}|"a",b' for i in range(12)).encode(), OK)
    yield tokens(
        "of missing values",
        "\n".join(
            ["NA", "null", "nan", "None", "N/A", "", "-", "NaN", "inf", "true", "#N/A", "0"]
        ).encode(),
        OK,
    )
    yield tokens("a JSON file nested too deeply", b"[" * 100_000, name="tokenizer.json")
    yield Case(
        "tokens from a file that is not there",
        ERROR,
        lambda folder: [_good(folder), "--tokens", str(folder / "gone.txt")],
    )
    yield Case(
        "tokens from a folder", ERROR, lambda folder: [_good(folder), "--tokens", str(folder)]
    )


def _options() -> Iterator[Case]:
    def options(*more: str, expect: str = ERROR) -> Case:
        return Case(
            "options " + " ".join(more or ("none",)), expect, lambda folder: [_good(folder), *more]
        )

    yield options(expect=OK)
    for bound in ("0", "-1", "nan", "inf", "1e400", "1e-320", "text", ""):
        yield options("--bound", bound)
    for bound in ("1e308", "1e-165", "1e160"):
        yield options("--bound", bound, expect=OK)
        yield options("--features", "ball", "--bound", bound, expect=OK)
    yield options("--features", "ball", "--low", "-1")
    yield options("--features", "unbounded", "--bound", "5")
    yield options("--features", "unbounded", "--low", "0")
    yield options("--features", "norm")
    yield options("--features", "cube")
    yield options("--low", "200")
    yield options("--low", "nan")
    yield options("--low", "0", expect=OK)
    for jobs in ("0", "-7", "two", "1e9"):
        yield options("--jobs", jobs)
    yield options("--jobs", "-1", "--backend", "dask")
    yield options("--backend", "threads")
    yield options("--backend", "dask", "--scheduler", "nonsense")
    yield options("--device", "toaster")
    yield options("--seed", "x")
    yield options("--seed", "-1")
    yield options("--script", "ELVISH")
    yield options("--script", "LATIN")
    yield options("--weight", "gone")
    yield options("--weight", "b")
    yield options("--bias", "gone")
    yield options("--bias", "W")
    yield options("--weight", "\x1b[31mred")
    yield options("--out", "")
    yield options("--nonsense")
    for classes in (
        "9" * 5000,
        "0-" + "9" * 5000,
        "12",
        "3-1",
        "-1",
        "a",
        "\u0663",
        ",",
        "0-11,0-11",
    ):
        right = classes == "0-11,0-11"
        yield options("--classes", classes, expect=OK if right else ERROR)
    for block in ("0", "-1", "text", "9" * 5000):
        yield options("--block", block)
    yield options("--block", "1", expect=OK)
    yield options("--jobs", "9" * 5000)
    for verdict in (
        "x",
        "unargmaxable=",
        "unargmaxable=-1",
        "argmaxable=0",
        "unargmaxable=" + "9" * 5000,
    ):
        yield options("--fail-on", verdict)

    def given(
        option: str, name: str, content: bytes | None, expect: str = ERROR, *more: str
    ) -> Case:
        def write(folder: Path) -> list[str]:
            if content is not None:
                (folder / "given").write_bytes(content)
            return [_good(folder), option, str(folder / "given"), *more]

        return Case(f"options {option} {name}", expect, write)

    for name, content in (
        ("missing", None),
        ("of text", b"hello"),
        ("empty", b""),
        ("of zeros", bytes(500)),
    ):
        yield given("--inputs", name, content)
    yield given(
        "--inputs",
        "of objects",
        _npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (3, 4), }"),
    )
    yield given("--inputs", "of a NaN", _npy(np.full((3, 4), np.nan)))
    yield given("--inputs", "of other features", _npy(np.zeros((3, 5))))
    yield given(
        "--inputs",
        "claiming 2^60 rows",
        _npy_header(
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 4), }"
        ),
    )
    yield given("--inputs", "as they should be", _npy(np.zeros((3, 4))), OK)
    yield given("--expected", "missing", None, ERROR, "--fail-on", "undecided")
    yield given("--expected", "no UTF-8", b"\xff\xfe", ERROR, "--fail-on", "undecided")
    yield given("--expected", "without --fail-on", b"0\n")
    yield given("--expected", "as it should be", b"0\n", OK, "--fail-on", "undecided")


def _out() -> Iterator[Case]:
    def out(title: str, prepare: Callable[[Path, str], None], expect: str) -> Case:
        def write(folder: Path) -> list[str]:
            path = _good(folder)
            prepare(folder / "results", path)
            return [path, "--out", str(folder / "results")]

        return Case(f"out {title}", expect, write)

    def scanned(place: Path, path: str) -> None:
        from softgeom.bottleneck import SoftmaxLayer, scan

        place.mkdir()
        scan(SoftmaxLayer(W, B), checkpoint=place / "blocks")

    def spoil(change: Callable[[Path], Any]) -> Callable[[Path, str], None]:
        def prepare(place: Path, path: str) -> None:
            scanned(place, path)
            for block in (place / "blocks").rglob("*.npz"):
                change(block)

        return prepare

    yield out("is a file", lambda place, _: place.write_text("x"), ERROR)
    yield out("resumed", scanned, OK)
    yield out("block cut", spoil(lambda block: block.write_bytes(block.read_bytes()[:100])), OK)
    yield out("block empty", spoil(lambda block: block.write_bytes(b"")), OK)
    yield out(
        "block flipped", spoil(lambda block: block.write_bytes(_flip(block.read_bytes(), 200))), OK
    )
    yield out("block of text", spoil(lambda block: block.write_text("hello")), OK)
    yield out("block is a folder", spoil(lambda block: (block.unlink(), block.mkdir())), OK)
    yield out(
        "blocks is a file",
        lambda place, _: (place.mkdir(), (place / "blocks").write_text("x")),
        ERROR,
    )
    yield out(
        "verdicts is a folder", lambda place, _: (place / "verdicts.csv").mkdir(parents=True), ERROR
    )


def _paths() -> Iterator[Case]:
    def named(name: str) -> Case:
        def write(folder: Path) -> list[str]:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_npz_bytes(W=W, b=B))
            return [str(path)]

        return Case(f"path {name!r}", OK, write)

    for name in (
        "with space.npz",
        "quote'.npz",
        'double".npz',
        "$(touch x).npz",
        "semi;colon.npz",
        "ünïcødé.npz",
        "new\nline.npz",
        "-dash.npz",
        "a/b/c.npz",
        "%s%n.npz",
    ):
        yield named(name)
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
