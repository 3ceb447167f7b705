"""The paper's tables of scanned models, held against one another."""

from __future__ import annotations

from compendium.printed_scans import FAMILIES, implied_totals, read_printed_scans


def test_tables_4_to_8_imply_table_1():
    printed = read_printed_scans()
    totals = implied_totals(printed)
    assert totals["agree"].all()
    assert printed["models"].sum() == 150
    assert totals["implied_affected"].sum() == 13
    assert set(printed["source"]) == set(FAMILIES)


def test_a_row_for_several_models_counts_as_many_and_keeps_its_bound():
    printed = read_printed_scans().set_index("model")
    row = printed.loc["en-cs.l2r(1-4)"]
    assert (row["models"], row["at_most"], row["exact_only"]) == (4, True, 2)
    assert printed.loc["zh-en.l2r(3)", "models"] == 1


def test_a_changed_number_is_noticed():
    printed = read_printed_scans()
    printed.loc[printed["model"] == "gpt2", "unargmaxable"] = 1
    totals = implied_totals(printed).set_index("source")
    assert not totals.loc["language-model", "agree"]
