"""The page's scan (JavaScript): verdicts as the library's or undecided; checkers accept it."""

import base64
import contextlib
import importlib
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from softgeom.ceiling.bound import Certifier
from softgeom.certifying.folder import EVIDENCE, verify_folder
from softgeom.checkpoints import load_head
from softgeom.checkpoints.labels import LabelsError, read_labels
from softgeom.features.ellipsoid import rounded_radius
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.scanner import scan
from softgeom.web import scripts
from softgeom.web.scan_page import scan_page, table

gguf = pytest.importorskip("gguf")

SCAN = """
const file = new File([Uint8Array.from(atob(argument.bytes), (c) => c.charCodeAt(0))], argument.name);
const { choices, chosen, said } = await m.answers.open({ file, table: argument.table });
const layer = choices.find(({ name }) => name === chosen);
const found = await m.answers.scan({ choice: { ...layer, weight: chosen }, set: argument.set, labels: null, file: file.name });
const coded = async (ask) => btoa(Array.from((await m.answers[ask]()).bytes, (byte) => String.fromCharCode(byte)).join(""));
return { ...found, said, proofs: await coded("proofs"), layer: await coded("layerFile") };
"""


@pytest.fixture
def dropped(javascript, tmp_path):
    """`dropped(content, name, features)`: what the page finds in that file; its proofs lie in
    tmp_path, and the layer that they are about.
    """

    def dropped_(content: bytes, name: str, features: FeatureSet) -> dict:
        coded = base64.b64encode(content).decode()
        argument = {"bytes": coded, "name": name, "set": stated(features), "table": table()}
        found = javascript("scan_worker", SCAN, argument)
        for name in ("proofs", "layer"):
            (tmp_path / name).write_bytes(base64.b64decode(found.pop(name)))
        (tmp_path / "proofs").rename(tmp_path / EVIDENCE)
        return found

    return dropped_


@pytest.fixture
def undecided(dropped, tool, tmp_path):
    """`undecided(layer, features)`: how many classes the page leaves undecided. Of the others its
    verdicts and ceilings are those of the library, and both checkers accept its folder.
    """

    def undecided_(layer: SoftmaxLayer, features: FeatureSet) -> int:
        ellipsoid = isinstance(features, Ellipsoid)
        norm = {"gain": features.gain, "shift": features.bias} if ellipsoid else {}
        found = dropped(npz(layer, **norm), "head.npz", features)
        report = verify_folder(tmp_path, layer)
        left = found["counts"]["undecided"]
        assert report.features == features.describe()
        assert (report.counts["undecided"], report.scanned) == (0, layer.classes - left)
        tool("check_proofs", tmp_path / EVIDENCE, tmp_path / "layer")
        ours = {f.index: f.evidence.verdict for f in scan(layer, features=features).findings}
        theirs = dict.fromkeys(ours, "argmaxable")
        theirs |= {row["t"]: row["verdict"] for row in found["lost"]}
        assert {t: (v, ours[t]) for t, v in theirs.items() if v not in ("undecided", ours[t])} == {}
        if not isinstance(features, Unbounded):  # there the library moves the weights first
            bounds = Certifier(layer, features)
            for row in found["lost"]:
                if row["verdict"] == "unargmaxable":
                    assert len(row["blocking"]) == row["of"]  # all are listed
                    rivals = [int(blocking["token"]) for blocking in row["blocking"]]
                    shares = [blocking["share"] for blocking in row["blocking"]]
                    bound = bounds.blocking_ceiling(row["t"], rivals, shares)
                    assert row["ceiling"] == pytest.approx(bound, rel=1e-6)
        return left

    return undecided_


def npz(layer: SoftmaxLayer, **more: np.ndarray) -> bytes:
    with io.BytesIO() as file:
        np.savez(file, W=layer.W, **({} if layer.b is None else {"b": layer.b}), **more)
        return file.getvalue()


FIVE = ["a", "b", "c", "d", "e"]
LISTS = [
    FIVE, [" ", *FIVE], [*FIVE, ""], ["<blank>", *FIVE], ["BLANK", *FIVE], [*FIVE, "[ctc_blk]"],
    ["中blank", *FIVE], ["́blank", *FIVE], ["a\r", "b"], ["\u2028", "\x0c", "a"], ["blank"], [],
]  # fmt: skip


@pytest.mark.parametrize("listed", LISTS, ids=ascii)
@pytest.mark.parametrize("ending", ["", "\n"])
@pytest.mark.parametrize("blank", ["", "first", "last", "none"])
def test_names_are_fitted_as_the_library_fits_them(javascript, tmp_path, listed, ending, blank):
    """Names are laid out in the same ways; a list that does not fit is refused alike."""
    (tmp_path / "names.txt").write_text("\n".join(listed) + ending, encoding="utf-8", newline="")
    body = "try { return m.parseLabels(...argument); } catch (error) { return error.message; }"
    for classes in range(1, 11):
        content = (tmp_path / "names.txt").read_bytes().decode()
        page = javascript("scan_files", body, [content, classes, "names.txt", blank])
        try:
            assert page == list(read_labels(tmp_path / "names.txt", classes, blank or None)[0])
        except LabelsError as error:
            said = str(error).removeprefix(f"{tmp_path}/").partition(": ")[0]
            assert page.partition(": ")[0] == said


def stated(features: FeatureSet) -> dict:
    if isinstance(features, Unbounded):
        return {"kind": "unbounded"}
    if isinstance(features, Ball):
        return {"kind": "ball", "radius": features.radius}
    if isinstance(features, Ellipsoid):
        return {"kind": "norm", "centred": features.centred, "gain": "gain", "shift": "shift"}
    low, high = features.bounds(1)
    return {"kind": "box", "low": float(low[0]), "high": float(high[0])}


def planted(
    rng: np.random.Generator, classes: int, dimension: int, *, bias: bool, dtype=np.float32
) -> SoftmaxLayer:
    """A random layer with inner classes, a twin, a copy, a midpoint, one off the hull by a hair."""
    W = rng.normal(size=(classes, dimension))
    b = rng.normal(size=classes) * 0.3
    W[1] = W[0]
    W[2], b[2] = W[0], b[0] - 1
    b[1] = b[0]
    for t in range(3, 7):
        share = rng.dirichlet(np.ones(classes - 7))
        W[t], b[t] = share @ W[7:], share @ b[7:] - 0.01 * rng.random()
    W, b = W.astype(dtype), b.astype(dtype)
    far = np.argsort(-np.linalg.norm(W, axis=1))[:2]
    W[5] = (W[far[0]] + W[far[1]]) / 2
    W[6] = W[far[0]] * dtype(1 + 1e-6)
    return SoftmaxLayer(W, b if bias else None)


GAIN, SHIFT = np.array([0.5, 1.5, -0.75, 2.0, 0.3]), np.array([0.1, -0.4, 0.0, 0.25, 0.05])
SETS = {"box": Box(100.0), "ball": Ball(3.0), "unbounded": Unbounded()}
ALL_SETS = SETS | {
    "lopsided": Box(6.0, low=-0.2785),
    "LayerNorm": Ellipsoid.layer_norm(GAIN, SHIFT, rounded=True),
    "LayerNorm, no shift": Ellipsoid.layer_norm(GAIN, rounded=True),
    "RMSNorm": Ellipsoid.rms_norm(GAIN, rounded=True),
    "RMSNorm with a shift": Ellipsoid(GAIN, SHIFT, radius=rounded_radius(GAIN, SHIFT)),
}


@pytest.mark.parametrize("name", ALL_SETS)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_verdicts_are_the_library_s_or_undecided(undecided, name, bias):
    # Only a shift without any bias, which no RMSNorm has, leaves a bound of exactly 0 to rounding.
    most = 12 if name == "RMSNorm with a shift" and not bias else 4 if "Norm" in name else 2
    for seed, dtype in enumerate((np.float16, np.float32, np.float64)):
        layer = planted(np.random.default_rng(seed), 40, 5, bias=bias, dtype=dtype)
        assert undecided(layer, ALL_SETS[name]) <= most


@pytest.mark.parametrize("features", SETS.values(), ids=SETS)
def test_layers_full_of_ties_get_no_wrong_verdict(undecided, features):
    """Layers of small integers, also off by the last digit, with biases off by hardly more; one to
    three dimensions.
    """
    rng = np.random.default_rng(5)
    classes = left = 0
    for n in range(20):
        C, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        W = rng.integers(-2, 3, (C, d)).astype(float)
        W = W * (1 + rng.integers(-1, 2, (C, d)) * 2.0**-52) if n % 2 else W
        b = rng.integers(-2, 3, C) + (n % 2) * rng.choice([0, 2.0**-30, 2.0**-52], C)
        layer = SoftmaxLayer(W, b if n % 4 < 2 else None)
        classes, left = classes + C, left + undecided(layer, features)
    assert left <= 0.25 * classes


@pytest.mark.parametrize(
    ("dimension", "spread", "others"), [(5, 0, 55), (5, 1e-8, 55), (24, 0, 92), (5, 1e-8, 0)]
)
def test_copies_but_for_their_last_digits_are_decided(undecided, dimension, spread, others):
    """Twenty rows that training never moved, 1e-8 apart as PP-OCRv3's are, with biases a little
    above the others', as in a part of its list: some win by a millionth, some never. Then
    without others.
    """
    rng = np.random.default_rng(4)
    W = rng.normal(size=(20 + others, dimension)) / 10
    b = rng.normal(-0.06, 0.01, 20 + others)
    W[:20] = rng.normal(size=dimension) * 0.03 + rng.normal(size=(20, dimension)) * 1e-8
    b[:20] = rng.normal(-0.04, spread, 20)
    layer = SoftmaxLayer(W.astype(np.float32), b.astype(np.float32))
    assert undecided(layer, Box(100.0)) == 0


def safetensors(**tensors: tuple[str, list[int], bytes]) -> bytes:
    header, content = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        place = [len(content), len(content) + len(data)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": place}
        content += data
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


def forms(W: np.ndarray, b: np.ndarray) -> dict[str, bytes]:
    """One layer in the forms in which files hold it; every number is a bfloat16 and a float16."""
    found = {}
    tokens = np.array(["é", "=1", "\n", "𝕏", "＝1", *"bcdefgh"])
    for name, arrays in {
        "plain": {"W": W, "b": b},
        "deflated": {"weight": W.astype(np.float64), "bias": b.astype(np.float64)},
        "fortran": {"W": np.asfortranarray(W), "b": b},
        "half": {"W": W.astype(np.float16), "b": b.astype(np.float16)},
        "big_endian": {"W": W.astype(">f4"), "b": b.astype(">f4")},
        "columns": {"decoder_ff_logit_out_W": W.T, "decoder_ff_logit_out_b": b[None]},
        "named": {"W": W, "b": b, "tokens": tokens},
    }.items():
        with io.BytesIO() as file:
            (np.savez_compressed if name == "deflated" else np.savez)(file, **arrays)
            found[f"{name}.npz"] = file.getvalue()
    upper = (W.view(np.uint32) >> 16).astype("<u2").tobytes()
    found["bf16.safetensors"] = safetensors(**{"lm_head.weight": ("BF16", [*W.shape], upper)})
    pieces = [*"abcdefghi", "Ġé", "Ã©", "ĊĠ"]  # the last two: é, and a new line with a space
    found["f32.gguf"] = gguf_file(W, None, pieces)
    return found | onnx_files(W, b)


def onnx_files(W: np.ndarray, b: np.ndarray) -> dict[str, bytes]:
    """A network of two products whose last is the layer: its numbers as a list or its constants as
    nodes, with PP-OCR's list of names, whose blank comes first and a space or two last.
    """
    found, first = {}, np.arange(8, dtype=np.float32).reshape(4, 2)
    for name, last, names in (
        ("matmul", "y0 = MatMul (h, W) y = Add (y0, b)", "abcdefghij"),
        ("gemm", "y = Gemm <transB = 1> (h, W, b)", "abcdefghi"),
    ):
        text = f"{name} (float x) => (float y) {{ h = MatMul (x, first) {last} }}"
        model = helper.make_model(parser.parse_graph(text))
        held = {"W": W, "b": b, "first": first}
        tensors = {n: numpy_helper.from_array(array, n) for n, array in held.items()}
        if name == "matmul":
            tensors["W"] = helper.make_tensor("W", TensorProto.FLOAT, W.T.shape, W.T.ravel())
            model.graph.initializer.extend(tensors.values())
        else:
            nodes = [helper.make_node("Constant", [], [n], value=t) for n, t in tensors.items()]
            nodes += model.graph.node
            del model.graph.node[:]
            model.graph.node.extend(nodes)
        model.metadata_props.add(key="character", value="\n".join(names))
        found[f"{name}.onnx"] = model.SerializeToString()
    return found


def gguf_file(content: np.ndarray, kind: Any, pieces: list[str] | None = None) -> bytes:
    """A file with one table, as llama.cpp writes them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "head.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_custom_alignment(64)
        if pieces:
            writer.add_tokenizer_model("gpt2")
            writer.add_token_list(pieces)
            writer.add_token_types([1] * len(pieces))
        writer.add_tensor("token_embd.weight", content, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


KINDS = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K".split()


@pytest.mark.parametrize("kind", KINDS)
def test_codes_stand_for_the_numbers_that_the_library_reads(javascript, tmp_path, kind):
    """Every bit of every float32 number, from blocks of random codes and scales."""
    rng, number = np.random.default_rng(len(kind) + ord(kind[1])), gguf.GGMLQuantizationType[kind]
    each, width = gguf.GGML_QUANT_SIZES[number]
    blocks = rng.integers(0, 256, (3 * 512 // each, width), dtype=np.uint8)
    small = rng.uniform(0.01, 2, len(blocks)).astype(np.float16).view(np.uint8).reshape(-1, 2)
    for at in {"F": [0], "B": [], "Q6": [208]}.get(kind[: 1 + (kind == "Q6_K")], [0, 2]):
        blocks[:, at : at + 2] = small  # half-precision scales, all finite
    if each == 1:
        blocks = gguf.quantize(rng.normal(size=(3, 512)).astype(np.float32), number)
    file = tmp_path / "head.gguf"
    file.write_bytes(gguf_file(blocks.view(np.uint8).reshape(3, -1), number))
    argument = {"bytes": base64.b64encode(file.read_bytes()).decode(), "name": file.name}
    read = javascript("scan_files", READ, argument)
    expected = load_head(file).layer.W
    np.testing.assert_array_equal(np.array(read["W"]).reshape(3, 512), expected.astype(float))


READ = """
const file = new File([Uint8Array.from(atob(argument.bytes), (c) => c.charCodeAt(0))], argument.name);
const { W } = await m.readLayer(await m.openWeights(file), { weight: "token_embd.weight", bias: null, transposed: false });
return { W: Array.from(W) };
"""


@pytest.mark.parametrize("name", list(forms(np.ones((12, 2), np.float32), np.ones(12, np.float32))))
def test_files_are_read_as_the_library_reads_them(dropped, tmp_path, name):
    """The folder passes `verify` against the layer of `load_head`."""
    rng = np.random.default_rng(3)
    W, b = (rng.integers(-64, 64, shape).astype(np.float32) / 32 for shape in ((12, 2), 12))
    path = tmp_path / name
    path.write_bytes(forms(W, b)[name])
    found = dropped(path.read_bytes(), name, Box(100.0))
    layer = load_head(path).layer
    np.testing.assert_array_equal(layer.W, W)
    assert verify_folder(tmp_path, layer).scanned + found["counts"]["undecided"] == 12


INFINITE, HUGE = np.array([1, 2, np.inf, 4], "<f4").tobytes(), np.array([1e300, 1]).tobytes()
WHOLE = forms(np.eye(12, 2, dtype=np.float32), np.ones(12))["f32.gguf"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (safetensors(W=("F32", [3, 2], bytes(8))), "the place of"),
        (safetensors(W=("I32", [3, 2], bytes(24))), "its tables are no floats: W (I32)"),
        (safetensors(W=("F32", [3, 2], bytes(24)))[:-1], "ends before the tensor"),
        (safetensors(W=("F32", [2, 2], INFINITE)), "has a NaN or infinite entry"),
        (safetensors(W=("F64", [1, 2], HUGE)), "beyond 2^40"),
        ((10**9).to_bytes(8, "little") + bytes(20), "is no .npz, .safetensors, .gguf or .onnx"),
        (b"GGUF" + bytes([3, 0, 0, 0]) + b"\xff" * 16, "is not a whole GGUF file"),
        (WHOLE[:-80], "ends before the tensor"),
    ],
)
def test_impossible_files_are_refused_in_one_sentence(opened, content, sentence):
    said = opened(content, "head.safetensors")["said"]
    assert sentence in said
    assert "\n" not in said


def test_floats_and_texts_are_written_as_python_writes_them(javascript):
    edges = "0 -0.0 1 100 0.1 -0.2785 1e-4 9.9e-5 1e15 1e16 1.5e300 5e-324 123456789.125"
    values = [2.0**-1022, *map(float, edges.split())]
    values += (np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)).tolist()
    body = "return argument.map((x) => m.hexFloat(Number(x)));"
    written = javascript("scan_proofs", body, [repr(value) for value in values])
    assert written == [value.hex() for value in values]
    texts = ["é", "\x7f", "\x1b[31m", "𝕏", '"\\', "\n\t\b", "\u2028", ""]
    assert javascript("scan_proofs", "return m.pythonJson(argument);", texts) == json.dumps(texts)


def test_bounds_leave_alone_what_rounding_may_have_made(javascript):
    """Some ulps win and prove nothing; a millionth does both."""
    rng = np.random.default_rng(1)
    W, d = rng.normal(size=(6, 8)), 8
    W[5] = W[:5].mean(axis=0)
    argument = {"W": W.ravel().tolist(), "d": d, "z": rng.uniform(-90, 90, d).tolist()}
    argument["folder"] = scripts.FOLDER.as_uri()
    body = """
    const [{makeScanLayer}, {certifyBlocking}, {certifiedMargin}] = await Promise.all(["layer", "blocking", "search"].map((name) => import(`${argument.folder}/scan_${name}.js`)));
    const layer = (gap) => makeScanLayer(Float64Array.from(argument.W), Float64Array.from([1, 1, 1, 1, 1, 1 - gap]), 6, argument.d, {kind: "box", low: -100, high: 100});
    const weights = Array(5).fill(0.5);
    const z = Float64Array.from(argument.z);
    return [1e-12, 1e-6].map((gap) => [certifyBlocking(layer(gap), 5, [0, 1, 2, 3, 4], weights), certifiedMargin(layer(0), z, gap)].map((v) => Number.isFinite(v) ? v : null));
    """
    near, far = javascript("scan_decide", body, argument)
    assert near == [None, None]
    assert -1e-6 <= far[0] < -0.9e-6
    assert 0.9e-6 < far[1] < 1e-6


def test_sums_that_vanish_below_the_range_of_floats_prove_nothing(javascript):
    """Class 0 leads by 5e-324 x_2 far enough out, and behind a LayerNorm by less."""
    body = """
    const [{makeScanLayer}, {makeNormLayer}, {certifyBlocking}] = await Promise.all(["layer", "norm", "blocking"].map((name) => import(`${argument}/scan_${name}.js`)));
    const bare = makeScanLayer(Float64Array.from([0, 0, 0.75, -5e-324, -0.75, -5e-324]), null, 3, 2, {kind: "unbounded"});
    const norm = {kind: "ellipsoid", gain: Float64Array.from([1, 1e-200, 0]), shift: new Float64Array(3), radius: 1, centred: true};
    const behind = makeNormLayer(Float64Array.from([0, 0, 0, -0.75, 1e-200, 0.5, 0.75, 1e-200, 0.5]), null, 3, 3, norm);
    return [bare, behind].map((layer) => Number.isFinite(certifyBlocking(layer, 0, [1, 2], [0.5, 0.5])));
    """
    assert javascript("scan_decide", body, scripts.FOLDER.as_uri()) == [False, False]


def test_its_bounds_accept_no_forgery(javascript, repository, monkeypatch):
    """Of every forged point and weight of the corpus the page certifies only what is true, with the
    bound that it computes itself; and nearly all that is honest. Layers at the ends of float64 it
    refuses.
    """
    monkeypatch.syspath_prepend(str(repository / "scanner" / "tests" / "forgeries"))
    corpus, honest, judge = (importlib.import_module(n) for n in ("corpus", "honest", "judge"))
    cases, asked = [], []
    ordinary = ("box", "ball", "unbounded", "layernorm", "rmsnorm, no bias", "wide")
    for name in (*ordinary, "tiny", "large"):
        file, claims = honest.files()[name], {}
        for forgery in [None, *(f for f in corpus.CORPUS.values() if f.of == name)]:
            # the page reads no evidence: only what can be decoded is asked about
            with contextlib.suppress(Exception):
                content = file.content if forgery is None else forgery.content()
                for claim in judge.Evidence.read(content).claims():
                    if claim["kinds"] in (0, 1, 2) and sendable(claim, file.layer):
                        claims.setdefault(repr(claim), (claim, forgery is None))
        features = FeatureSet.from_json(file.evidence.sets[0])
        numbers = stated(features)
        if isinstance(features, Ellipsoid):
            numbers |= {"kind": "ellipsoid", "radius": features.radius}
            numbers |= {"gain": features.gain.tolist(), "shift": features.bias.tolist()}
        case = {"W": file.layer.W.astype(float).ravel().tolist(), "d": file.layer.dimension}
        case |= {"b": None if file.layer.b is None else file.layer.b.astype(float).tolist()}
        keys = ("order", "point", "proof")
        sent = [{key: one[key] for key in keys if key in one} for one, _ in claims.values()]
        cases.append({**case, "set": numbers, "claims": sent})
        asked.append((judge.Judge(file.layer, features.to_json()), claims.values()))
    bounds = javascript("scan_decide", CERTIFY, {"cases": cases, "folder": scripts.FOLDER.as_uri()})
    certified, refused = 0, 0
    assert bounds[len(ordinary) :] == ["refused"] * 2
    for (judged, claims), found in zip(asked, bounds[: len(ordinary)], strict=False):
        for (claim, honestly), bound in zip(claims, found, strict=True):
            assert bound is None or judged.is_true(claim | {"margins": bound, "radii": 0.0}), claim
            certified += honestly and bound is not None
            refused += bound is None
    assert certified >= 90
    assert refused >= 25


def sendable(claim: dict, layer: SoftmaxLayer) -> bool:
    """Whether a claim is about classes of the layer, in finite numbers."""
    if [len(block) for block in claim["order"]] != [1] or claim["sets"]:
        return False
    t, proof = claim["order"][0][0], claim.get("proof", ())
    if any(a != t for a, _, _ in proof):  # the page knows no other comparisons
        return False
    named = [t, *(b for _, b, _ in proof)]
    numbers = [*claim.get("point", ()), *(w for *_, w in claim.get("proof", ()))]
    inside = all(type(t) is int and 0 <= t < layer.classes for t in named)
    return inside and bool(np.isfinite(numbers).all())


CERTIFY = """
const [layers, norms, blocking, search] = await Promise.all(["layer", "norm", "blocking", "search"].map((n) => import(`${argument.folder}/scan_${n}.js`)));
return argument.cases.map(({ W, b, d, set, claims }) => {
  const make = set.kind === "ellipsoid" ? norms.makeNormLayer : layers.makeScanLayer;
  let layer;
  try {
    layer = make(Float64Array.from(W), b && Float64Array.from(b), W.length / d, d, set);
  } catch (error) {
    if (/are beyond 2\\^40 or below 2\\^-40/.test(error.message)) return "refused";
    throw error;
  }
  return claims.map(({ order: [[t]], point, proof }) => {
    let bound;
    if (point) {
      const z = Float64Array.from(point, (x) => x * layer.unit);
      bound = search.certifiedMargin(layer, z, search.look(layer, t, z).margin);
      if (!(bound > 0)) bound = null;
    } else {
      const largest = Math.max(...proof.map((row) => row[2]));
      const scaled = proof.map((row) => row[2] / 2 ** layers.exponent(largest));
      bound = largest > 0 ? blocking.certifyBlocking(layer, t, proof.map((row) => row[1]), scaled) : null;
      if (!(bound <= 0)) bound = null;
    }
    return Number.isFinite(bound) ? bound : null;
  });
});
"""


def test_a_page_carries_the_layer_that_it_is_given():
    layer = SoftmaxLayer(np.eye(3, 2, dtype=np.float32), np.arange(3.0), ["a", "</script>", "ü"])
    page = scan_page(layer, "mine & yours", more={"a <b>": "x.html"})
    coded = re.search(r'scanPage\([^\n]*, "([^"]*)", "mine & yours.npz"\)', page)
    with np.load(io.BytesIO(base64.b64decode(coded[1]))) as held:
        assert np.array_equal(held["W"], layer.W)
        assert np.array_equal(held["b"], layer.b)
        assert held["tokens"].tolist() == list(layer.tokens)
    assert "Scan mine &amp; yours</button>" in page
    assert '<a href="x.html">a &lt;b&gt;</a>' in page


TINY = {
    "W": [
        [0, 8.900295434028806e-308, 0],
        [0, -4.552209918945439e-159, 0],
        [0, -9.818186930595453e-91, 0],
        [-5.556896873712694e-163, -2.698802673467014e-79, 1],
        [0, 0, 0],
    ],
    "b": [0, -2.0902722826084166e-199, -9.723461371658034e-63, 1, 0],
    "gain": [0.0, 1, 3],
    "shift": [0.0, 0, 0],
}


def test_weights_beyond_the_range_of_floats_end(dropped, javascript):
    assert javascript("scan_layer", "return m.exponent(Infinity) === Infinity;")
    with io.BytesIO() as file:
        np.savez(file, **{name: np.array(values, float) for name, values in TINY.items()})
        content = file.getvalue()
    counts = dropped(content, "m.npz", Ellipsoid.rms_norm([0.0, 1, 3]))["counts"]
    layer = SoftmaxLayer(TINY["W"], TINY["b"])
    library = scan(layer, features=Ellipsoid.rms_norm([0.0, 1, 3])).counts
    assert counts["unargmaxable"] <= library["unargmaxable"]
    assert counts["argmaxable"] <= library["argmaxable"]
