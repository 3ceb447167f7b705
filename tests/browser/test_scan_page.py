"""The page that scans, as a reader meets it: a file, the verdicts, the proofs to take home."""

import io
import re

import numpy as np
import pytest

from softgeom.certifying.folder import EVIDENCE, verify_folder
from softgeom.layer import SoftmaxLayer
from softgeom.scanner import scan

pytestmark = pytest.mark.browser


@pytest.fixture
def address(pages):
    return (pages / "scan.html").as_uri()


def _npz(**arrays) -> bytes:
    with io.BytesIO() as file:
        np.savez_compressed(file, **arrays)
        return file.getvalue()


def _drop(tab, name: str, content: bytes) -> None:
    tab.set_input_files(
        "#file", {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )


def _downloaded(tab, button: str) -> bytes:
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name=button).click()
    return waiting.value.path().read_bytes()


def _take_evidence(tab, folder) -> None:
    (folder / EVIDENCE).write_bytes(_downloaded(tab, "Download the evidence"))


def _scan(tab) -> str:
    tab.get_by_role("button", name="Scan", exact=True).click()
    tab.locator("#found").wait_for()
    return tab.locator("#headline").inner_text()


def test_a_dropped_layer_is_scanned_and_its_proofs_hold(address, open_tab, tmp_path, tool):
    rng, names = np.random.default_rng(0), [f"word{n}" for n in range(60)]
    W, b = (rng.normal(size=size).astype(np.float32) for size in ((60, 3), 60))
    layer = SoftmaxLayer(W, b, names)
    tab = open_tab(address)
    _drop(tab, "head.npz", _npz(W=layer.W, b=layer.b, other=np.zeros((2, 3))))
    tab.locator("#choice").wait_for()
    assert "60 classes over 3 features" in tab.locator("#shape").inner_text()
    assert tab.get_by_label("Bias").input_value() == "b"
    listed = {"name": "names.txt", "mimeType": "text/plain", "buffer": "\n".join(names).encode()}
    tab.set_input_files("#labels", listed)
    headline = _scan(tab)
    expected = scan(layer)
    never = expected.counts["unargmaxable"] + expected.counts["tied"]
    assert headline == f"{never} of 60 classes can never be the one answer."
    rows = tab.locator("#rows tr")
    assert rows.count() == 60 - expected.counts["argmaxable"]
    lost = [f.index for f in expected.findings if f.evidence.verdict == "unargmaxable"]
    tab.get_by_label("Search by number").fill(f"word{lost[0]} ")
    assert rows.count() == 1
    assert rows.first.locator("th").inner_text() == f"word{lost[0]} ({lost[0]})"
    lit = " ".join(tab.locator("#wall b").all_inner_texts()).split()
    assert lit == [f"word{n}" for n in sorted(lost)]
    _take_evidence(tab, tmp_path)
    assert verify_folder(tmp_path, layer).counts == expected.counts
    (tmp_path / "layer").write_bytes(_downloaded(tab, "Download the layer"))
    tool("check_proofs", tmp_path / EVIDENCE, tmp_path / "layer")
    assert re.fullmatch(r"\d+(\.\d+)?%", rows.first.locator("td").nth(1).inner_text())


def test_a_layer_that_is_not_certain_is_asked_for(address, open_tab):
    tab = open_tab(address)
    rng = np.random.default_rng(2)
    heads = {f"heads.{n}.weight": rng.normal(size=(9, 4)).astype(np.float32) for n in range(2)}
    _drop(tab, "two.npz", _npz(**heads))
    tab.locator("#choice").wait_for()
    assert (
        "choose one: heads.0.weight (9, 4), heads.1.weight (9, 4)"
        in tab.locator("#said").inner_text()
    )
    tab.get_by_role("button", name="Scan", exact=True).click()
    assert "Choose the layer first" in tab.locator("#problem").inner_text()
    tab.locator("#weight").select_option("heads.1.weight")
    counts = scan(SoftmaxLayer(heads["heads.1.weight"])).counts
    never = counts["unargmaxable"] + counts["tied"]
    assert _scan(tab).startswith(f"{never} of 9" if never else "Every one of the 9")
    tab.locator("#set").select_option("layernorm")
    tab.get_by_role("button", name="Scan", exact=True).click()
    assert "Choose the normalisation's gain first" in tab.locator("#problem").inner_text()


def test_a_scan_is_cancelled_and_the_page_stays_alive(address, open_tab):
    tab = open_tab(address)
    W = np.random.default_rng(1).normal(size=(6000, 100)).astype(np.float32)
    _drop(tab, "large.npz", _npz(W=W))
    tab.locator("#choice").wait_for()
    tab.get_by_role("button", name="Scan", exact=True).click()
    tab.locator("#far", has_text="of 6,000 classes").wait_for()
    tab.get_by_role("button", name="Cancel").click()
    tab.locator("#choice").wait_for()
    assert not tab.locator("#found").is_visible()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.npz", b"PK\x03\x04 no more", "is not a whole .npz file"),
        ("nan.npz", _npz(W=np.array([[1.0, np.nan], [0, 1]])), "W has a NaN or infinite entry"),
    ],
)
def test_bad_files_get_one_sentence(address, open_tab, name, content, sentence):
    tab = open_tab(address)
    _drop(tab, name, content)
    tab.locator("#choice:visible, #problem:visible").first.wait_for()
    if tab.locator("#choice").is_visible():
        tab.get_by_role("button", name="Scan", exact=True).click()
    tab.locator("#problem").wait_for()
    assert sentence in tab.locator("#problem").inner_text()
