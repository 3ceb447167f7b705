"""verdicts.csv bears every token; cards show none of a token's own markup."""

import csv

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from softgeom.card import card
from softgeom.layer import SoftmaxLayer
from softgeom.rows import row_table
from softgeom.verdict_table import escape_token, unescape_token, write_verdicts

HARD = [
    "", " ", "NA", "null", "nan", "None", "-1", "1e5", "\r", "\n", "\r\n", "\t", "\x1b[31m", '"',
    '""', "'", ",", ";", "=1+1", "=cmd|' /C calc'!A0",
    "+", "-", "@", "\\", "\\n", "\\x41", "\x00", "\u2028", "\ufeff", "\u200b", "\ud800", "👩‍🚀",
    "<script>", "&amp;", "true", "inf", "#N/A", " a ", "a\\",
]  # fmt: skip


def _table(tokens):
    n = len(tokens)
    verdicts = np.where(np.arange(n) % 2 == 0, "unargmaxable", "argmaxable")
    columns = {
        "class": np.arange(n),
        "token": pd.Series(tokens, dtype=object),
        "verdict": verdicts,
        "method": "look",
        "steps": np.arange(n),
    }
    return pd.DataFrame(
        columns | {"margin": np.linspace(-1 / 3, 1, n), "radius": [np.nan, *[0.1] * (n - 1)]}
    )


def test_every_token_is_one_that_spreadsheets_and_terminals_bear(tmp_path):
    tokens = [*HARD, *(bytes([n]).decode("latin1") for n in range(256))]
    table = _table(tokens)
    write_verdicts(table, tmp_path / "verdicts.csv")
    read = pd.read_csv(tmp_path / "verdicts.csv", keep_default_na=False)
    assert [unescape_token(token) for token in read["token"]] == tokens
    text = (tmp_path / "verdicts.csv").read_bytes()
    assert text.count(b"\n") == len(table) + 1  # a row a line
    assert not set(text) & (set(range(32)) - {10})  # and nothing that a terminal obeys
    with (tmp_path / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        assert not [row for row in csv.DictReader(file) if row["token"][:1] in tuple("=+-@")]


@given(st.text(alphabet=st.characters(codec=None)))
def test_escaping_is_undone(token):
    assert unescape_token(escape_token(token)) == token


def test_a_card_shows_tokens_and_runs_none():
    table = _table([*HARD, "<img src=x onerror=alert(1)>"])
    counts = {"argmaxable": 20, "tied": 0, "unargmaxable": 20, "undecided": 0}
    page = card(table, counts, "<b>model</b>", ["<i>fact</i>"], ceiling=lambda t: 0.01234)
    assert "<td>1.24%</td>" in page
    assert "<script>" not in page
    assert "<img" not in page
    assert "&lt;b&gt;model" in page
    assert "src=" not in page.replace("img src=x", "")  # nothing is loaded from elsewhere


def test_near_copies_and_the_distance_to_untrained_rows():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((30, 8))
    W[:6] = 0.01 * rng.standard_normal((6, 8)) + 2  # untrained: alike, and long
    W[10] = W[11] * (1 + 1e-6)
    table = row_table(SoftmaxLayer(W), [0, 1, 2])
    assert set(table.nsmallest(6, "distance")["class"]) == set(range(6))
    assert table.loc[10, "copy"] == 11
    assert table.loc[10, "copy_distance"] < 1e-5
    distances = np.linalg.norm(W[:, None] - W[None], axis=2) + np.diag(np.full(30, np.inf))
    np.testing.assert_array_equal(table["copy"], distances.argmin(1))
