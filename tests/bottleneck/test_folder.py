"""A scan's folder is verified whole; every damage is refused in one sentence that says where."""

import csv
import hashlib
import json
import shutil
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from softgeom.bottleneck.blocks import block_path, code
from softgeom.bottleneck.certifying import folder
from softgeom.bottleneck.certifying.folder import (
    EVIDENCE,
    SUMMARY,
    TABLE,
    verify_folder,
    write_folder,
)
from softgeom.bottleneck.certifying.verdict import Finding, Unknown
from softgeom.bottleneck.examples import uniform_layer
from softgeom.bottleneck.scanner import scan
from softgeom.cli import main
from softgeom.commands import boundary
from softgeom.features import Ball, Box
from softgeom.layer import SoftmaxLayer, fingerprint, identity


def example() -> SoftmaxLayer:
    """Sixty classes on two features: unargmaxable ones, winners, and a pair of twins."""
    layer = uniform_layer(60, 2, seed=3)
    return SoftmaxLayer(np.vstack([layer.W, layer.W[:1]]), np.append(layer.bias, layer.bias[0]))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    out = tmp_path_factory.mktemp("original")
    write_folder(out, scan(example()), {"model": "example"})
    return out


@pytest.fixture
def out(original, tmp_path):
    shutil.copytree(original, tmp_path / "scan")
    return tmp_path / "scan"


def reseal(out, more=(), **changes) -> None:
    """What a forger does: recompute every hash after an edit."""
    summary = json.loads((out / SUMMARY).read_text())
    summary |= changes
    for name in (TABLE, EVIDENCE, *more):
        summary["sha256"][name] = hashlib.sha256((out / name).read_bytes()).hexdigest()
    summary["digest"] = folder._digest(summary)
    (out / SUMMARY).write_text(json.dumps(summary))


def edit_table(out, change) -> None:
    with (out / TABLE).open(newline="") as file:
        rows = list(csv.reader(file))
    change(rows)
    plain = (0, 4, 5, 6)  # the columns of numbers
    lines = [
        ",".join(cell if n and k in plain and cell else f'"{cell}"' for k, cell in enumerate(row))
        for n, row in enumerate(rows)
    ]
    (out / TABLE).write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")


def refused(out, match: str, layer=None) -> None:
    with pytest.raises(ValueError, match=match) as error:
        verify_folder(out, layer or example())
    assert "\n" not in str(error.value)


def test_an_untouched_folder_is_verified(out):
    report = verify_folder(out, example())
    assert report.scanned == report.classes == 61
    assert report.counts["tied"] == 2
    assert str(report).startswith(
        f"verified for every class of layer {fingerprint(example())[:16]}, features |x| <= 100: "
    )


def test_any_flipped_bit_is_refused(out):
    rng = np.random.default_rng(0)
    for name in (TABLE, EVIDENCE, SUMMARY):
        whole = (out / name).read_bytes()
        for place in rng.choice(len(whole), 25, replace=False):
            broken = bytearray(whole)
            broken[place] ^= 1 << int(rng.integers(8))
            (out / name).write_bytes(bytes(broken))
            refused(out, ".")
        (out / name).write_bytes(whole)


@pytest.mark.parametrize("name", [TABLE, EVIDENCE, SUMMARY])
def test_files_cut_or_missing_are_refused(out, name):
    whole = (out / name).read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 9):
        (out / name).write_bytes(whole[:size])
        refused(out, name)
        if name != SUMMARY:
            reseal(out)
            refused(out, name)
    (out / name).unlink()
    refused(out, f"has no {name}")


def test_deep_or_strange_json_is_refused(out):
    for text in ("[" * 100_000, "{}", "[]", "null", '{"sha256": 3}', '"text"'):
        (out / SUMMARY).write_text(text)
        refused(out, "not a summary")


def test_evidence_of_another_model_is_refused(out, tmp_path):
    refused(out, "another layer", SoftmaxLayer(example().W * 2, example().b))
    refused(out, "another layer", SoftmaxLayer(example().W))
    other = uniform_layer(61, 2, seed=9)
    write_folder(tmp_path / "other", scan(other))
    shutil.copy(tmp_path / "other" / EVIDENCE, out / EVIDENCE)
    reseal(out)
    refused(out, "another layer")


def test_dropped_classes_are_named(out):
    layer = example()
    part = scan(layer, np.delete(np.arange(61), [17, 40]))
    part.save(out / EVIDENCE)
    edit_table(out, lambda rows: [rows.pop(i + 1) for i in (40, 17)])
    reseal(out, counts=part.counts)
    refused(out, "first class without evidence is 17")


def test_the_name_of_a_block_says_what_it_is_about(tmp_path):
    """Layer and stage, feature set, classes, and the code that decides."""
    layer = identity(example())
    first = block_path(tmp_path, layer, "key", Box(1.0), np.arange(3))
    others = [("other", Box(1.0), 3), ("key", Box(2.0), 3), ("key", Box(1.0), 4)]
    names = {
        block_path(tmp_path, layer, key, features, np.arange(n)).name for key, features, n in others
    } | {block_path(tmp_path, {**layer, "b": None}, "key", Box(1.0), np.arange(3)).name}
    assert first == block_path(tmp_path, layer, "key", Box(1.0), np.arange(3, dtype=np.int32))
    assert first.parent == tmp_path
    assert len({first.name, *names}) == 5
    assert all(name.startswith("block-") and name.endswith(".npz") for name in names)


def test_other_code_gives_blocks_another_name(monkeypatch):
    ours = code()
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"other")
    assert code.__wrapped__() != ours


def test_an_edited_table_row_is_named(out):
    for column, value in ((2, "undecided"), (5, "0.25"), (6, "0.5"), (1, "x")):
        whole = (out / TABLE).read_bytes()
        edit_table(out, lambda rows, c=column, v=value: rows[8].__setitem__(c, v))
        reseal(out)
        refused(out, "differs from the evidence in row 8: '7,")
        (out / TABLE).write_bytes(whole)
    edit_table(out, lambda rows: rows.append(rows[-1]))
    reseal(out)
    refused(out, "in row 62: '60,.* instead of ''")


def test_a_weakened_verdict_is_refused(out, capsys):
    whole = scan(example())
    weak = Finding(11, Unknown(np.inf, "who knows"), "lp", 0, np.inf, np.nan)
    whole = replace(whole, findings=[weak if f.index == 11 else f for f in whole.findings])
    write_folder(out, whole)
    assert verify_folder(out, whole.layer).undecided == (11,)
    np.savez(out / "layer.npz", W=whole.layer.W, b=whole.layer.bias)
    assert main(["verify", str(out), str(out / "layer.npz")]) == boundary.REFUSED
    assert "Class 11 (11) is filed as undecided, but is" in capsys.readouterr().err


def test_every_known_file_is_bound_and_the_rest_is_named(out):
    (out / "notes.txt").write_text("mine")
    assert verify_folder(out, example()).unchecked == ("notes.txt",)
    (out / "card.html").write_text("all is well")
    refused(out, "card.html was added after the scan")
    reseal(out, ("card.html",))
    assert verify_folder(out, example()).unchecked == ("card.html", "notes.txt")
    (out / "card.html").write_text("all is better")
    refused(out, "card.html was changed after the scan")
    (out / "card.html").unlink()
    refused(out, "has no card.html")


def test_the_second_table_is_that_of_the_evidence(out):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = out / "verdicts.parquet"
    honest = pandas.read_parquet(path)
    for change in (
        honest.assign(verdict="unargmaxable"),
        honest.assign(margin=honest.margin * 2),
        honest.assign(token=[*honest.token[:-1], "x"]),
        honest[:-1],
        honest.assign(more=1),
        honest.astype({"steps": float}),
    ):
        change.to_parquet(path, index=False)
        refused(out, "verdicts.parquet was changed after the scan")
        reseal(out, ("verdicts.parquet",))
        refused(out, "verdicts.parquet differs from the evidence")
    # a word of 64 MB, and a codec that shrinks it to nothing
    word = honest.assign(token=["x" * 2**26, *honest.token[1:]])
    for codec, said in (("snappy", "bytes long"), ("zstd", "compressed in another way")):
        word.to_parquet(path, index=False, compression=codec)
        reseal(out, ("verdicts.parquet",))
        refused(out, said)
    path.write_bytes(b"PAR1")
    reseal(out, ("verdicts.parquet",))
    refused(out, "verdicts.parquet is not a valid table")
    path.unlink()
    refused(out, "has no verdicts.parquet")
    honest.to_parquet(path, index=False)
    reseal(out, ("verdicts.parquet",))
    verify_folder(out, example())


def test_a_footer_that_counts_a_row_which_no_group_holds_is_refused(out):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = out / "verdicts.parquet"
    parquet.write_table(parquet.read_table(path)[:-1], path)
    data, ours, more = path.read_bytes(), 2 * 60, bytes([2 * 61])  # numbers are stored doubled
    told = (data[:n] + more + data[n + 1 :] for n, byte in enumerate(data) if byte == ours)
    path.write_bytes(next(d for d in told if parquet.read_metadata(BytesIO(d)).num_rows == 61))
    reseal(out, ("verdicts.parquet",))
    refused(out, "verdicts.parquet differs from the evidence")


def test_a_table_is_written_in_one_way(out):
    """What one programme takes for a cell, another takes for two, or for a row."""
    honest = (out / TABLE).read_bytes()
    word = b'"argmaxable"', b'"arg"maxable'
    for a, b in ((b"\n", b"\r"), word, (b'"7"', b"7"), (b"", b"\xff")):
        (out / TABLE).write_bytes(honest.replace(a, b, 1))
        reseal(out)
        refused(out, "verdicts.csv differs from the evidence in")
    (out / TABLE).write_bytes(honest)
    reseal(out)
    verify_folder(out, example())


@pytest.mark.parametrize("length", [2_500, 150_000])
def test_a_table_of_long_tokens_is_verified(length, tmp_path):
    """Cells longer than Python's csv reads, a megabyte of them, and 45 kB."""
    rng, layer = np.random.default_rng(0), uniform_layer(9, 2, seed=1)
    tokens = [rng.bytes(length).hex() for _ in range(9)]
    layer = SoftmaxLayer(layer.W, layer.b, tokens)
    write_folder(tmp_path, scan(layer))
    assert verify_folder(tmp_path, layer).scanned == 9


def test_columns_under_other_names_are_refused(out):
    """Pandas calls a column as a note in the file says, and other readers as the file does."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, other = out / "verdicts.parquet", {"margin": "radius", "radius": "margin"}
    table = parquet.read_table(path)
    note = json.loads(table.schema.metadata[b"pandas"])
    for column in note["columns"]:
        column["name"] = other.get(column["field_name"], column["name"])
    swapped = [table[other.get(name, name)] for name in table.column_names]
    for changed in (
        pyarrow.table(swapped, names=table.column_names),
        table.replace_schema_metadata({"pandas": json.dumps(note | {"index_columns": ["class"]})}),
    ):
        told = changed.replace_schema_metadata({"pandas": json.dumps(note)})
        parquet.write_table(told, path)
        reseal(out, ("verdicts.parquet",))
        refused(out, "verdicts.parquet differs from the evidence")


def test_a_summary_that_counts_wrongly_or_says_a_field_twice_is_refused(out):
    reseal(out, counts={"argmaxable": 61})
    refused(out, "says counts")
    reseal(out, feature_set="everything")
    refused(out, "says")
    reseal(out, format=0)
    refused(out, "of another version")
    reseal(out, format=folder.FORMAT, classes=60)
    refused(out, "speaks of 60 classes")
    reseal(out, classes=61.0)  # which Python takes for 61
    refused(out, "speaks of 61.0 classes")
    honest = (out / SUMMARY).read_text()
    (out / SUMMARY).write_text('{"counts": {"argmaxable": 61}, ' + honest[1:])
    refused(out, "a field occurs twice")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scanned", 60), ("unargmaxable_also", {"whatever the features": 3}),
        ("fingerprint", "0" * 64), ("features", 60), ("bias", None), ("dtype", "float16"),
        ("named", 1),
    ],
)  # fmt: skip
def test_whatever_a_summary_says_of_the_layer_is_compared(out, name, value):
    reseal(out, model="another", versions={})  # nobody can prove that
    assert verify_folder(out, example()).scanned == 61
    reseal(out, **{name: value})
    refused(out, f"says {name}")


def test_a_folder_lies_in_new_ones_and_may_be_without_its_second_table(tmp_path):
    out = tmp_path / "one" / "two"
    write_folder(out, scan(example(), [0, 5], features=Ball(2.0)), card="a page")
    assert (out / "card.html").read_text() == "a page"
    (out / "verdicts.parquet").unlink(missing_ok=True)
    hashes = json.loads((out / SUMMARY).read_text())["sha256"]
    hashes.pop("verdicts.parquet", None)
    reseal(out, sha256=hashes)
    report = verify_folder(out, example())
    assert (report.scanned, report.features) == (2, "||x|| <= 2")
    assert "2 of 61" in str(report)
    edit_table(out, lambda rows: rows[0].__setitem__(0, "id"))
    reseal(out)
    refused(out, "its header")
