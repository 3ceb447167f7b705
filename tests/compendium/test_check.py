"""Comparison with the papers: unlisted differences fail, and so do stale exceptions."""

import pandas as pd
import pytest
import yaml

from compendium import __main__ as command_line
from compendium import check


@pytest.fixture
def compare(compendium):
    (compendium / "data" / "reference" / "paper.csv").write_text("n,count\n1,10\n2,20\n")
    folder = compendium / "results" / "default" / "10_demo"
    folder.mkdir(parents=True)

    def compare(ours, exceptions=(), tolerance=0):
        pd.DataFrame({"n": [1, 2], "regions": ours}).to_csv(folder / "counts.csv", index=False)
        entry = {"id": "demo", "title": "Demo", "keys": ["n"], "tolerance": tolerance}
        entry |= {"paper": "paper.csv", "paper_column": "count", "exceptions": list(exceptions)}
        entry |= {"ours": "10_demo/counts.csv", "our_column": "regions"}
        (compendium / "data" / "reference" / "comparisons.yaml").write_text(yaml.safe_dump([entry]))
        return check.compare("default")

    return compare


def _exception(n, low, high):
    return {"where": {"n": n}, "reason": "known", "low": low, "high": high}


def test_equal_numbers_pass_and_differences_beyond_the_relative_tolerance_fail(compare, capsys):
    assert [row.verdict for row in compare([10, 20])] == ["equal", "equal"]
    assert command_line.main(["check"]) == 0
    assert "2 numbers: 2 equal, 0 explained, 0 DIFFERENT" in capsys.readouterr().out
    assert [row.verdict for row in compare([10, 21])] == ["equal", "DIFFERENT"]
    assert command_line.main(["check"]) == 1
    assert [row.verdict for row in compare([10.09, 20.5], tolerance=0.01)] == ["equal", "DIFFERENT"]


def test_a_profile_that_builds_on_default_is_compared_with_its_tables(compare, compendium):
    compare([10, 20])
    assert [row.verdict for row in check.compare("full")] == ["equal", "equal"]
    own = compendium / "results" / "full" / "10_demo"
    own.mkdir(parents=True)
    (own / "counts.csv").write_text("n,regions\n1,10\n2,21\n")
    assert [row.verdict for row in check.compare("full")] == ["equal", "DIFFERENT"]
    assert [row.verdict for row in check.compare("paper")] == ["DIFFERENT"]


@pytest.mark.parametrize(
    ("exception", "verdict", "reason"),
    [
        (_exception(2, 20.5, 21.5), "explained", "known"),
        (_exception(2, 22, 23), "DIFFERENT", "outside the listed range"),
        (_exception(1, 9, 11), "DIFFERENT", "stale"),
        (_exception(3, 9, 11), "DIFFERENT", "matches no number"),
    ],
)
def test_exceptions_are_held_to_their_word(compare, exception, verdict, reason):
    rows = compare([10, 21], [exception])
    assert any(row.verdict == verdict and reason in row.reason for row in rows)


def test_missing_results_and_columns_are_named(compare, compendium):
    compare([10, 20])
    path = compendium / "results" / "default" / "10_demo" / "counts.csv"
    path.write_text(path.read_text().replace("regions", "rankings"))
    (row,) = check.compare("default")
    assert row.verdict == "DIFFERENT"
    assert row.reason.endswith("counts.csv has no column regions; it has n, rankings")
    path.unlink()
    (row,) = check.compare("default")
    assert row.verdict == "DIFFERENT"
    assert "run `make 10_demo` first" in row.reason


def test_unknown_fields_are_refused(compendium):
    (compendium / "data" / "reference" / "comparisons.yaml").write_text("- id: x\n  tolerence: 0\n")
    with pytest.raises(ValueError, match=r"unknown or missing field .*tolerence"):
        check.specification()
