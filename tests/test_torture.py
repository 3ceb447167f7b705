"""The fuzzers of `make torture` run and judge rightly; good samples are marked `torture`."""

import ast
import csv
import runpy
import subprocess
import sys

import pytest
from torture import kills, trial

from compendium.pages import fuzzers, readme

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


def _answer(repository, *arguments):
    command = [sys.executable, "-m", *arguments]
    answer = subprocess.run(command, cwd=repository / "tools", capture_output=True, text=True)
    if "no small file system can be had here" in answer.stdout:
        pytest.skip("a full disk takes Linux and root")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_a_few_cases_are_answered_rightly(repository, tmp_path):
    families = ["files", "results", "hub"]
    said = _answer(repository, "torture", *families, "--every", "240", "--out", str(tmp_path))
    assert said.count(" 0 answered wrongly") == len(families)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(families)


@pytest.mark.torture
@pytest.mark.parametrize(
    ("families", "option", "chosen"),
    [
        ("files results inspect", "--every", "12"),
        ("files", "--only", "out block"),
        ("hub", "--only", "names"),
        ("hub", "--only", "once"),
        ("disk", "--only", "scan 8"),
    ],
)
def test_a_sample_is_answered_rightly(repository, families, option, chosen):
    said = _answer(repository, "torture", *families.split(), option, chosen)
    assert said.count(" 0 answered wrongly") == len(families.split())
    assert ": 0 hostile" not in said


@pytest.mark.torture
def test_a_few_kills_lose_nothing(repository, tmp_path):
    table = tmp_path / "kills.csv"
    _answer(repository, "torture.kills", "scan", "--kills", "2", "--out", str(table))
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["kills"]) for row in rows) == 2
    assert {row["same bytes"] for row in rows} == {"True"}


def test_the_page_counts_what_the_tables_hold(tmp_path):
    """Two cases with one fault, four kills, two survivors."""
    tables = {
        "torture/hub": "kind,case,expected,answer,wrong,seconds,megabytes,sentence\n"
        "a,b,ok,done,,1.5,3,\na,c,error,hangs,hangs,20.1,2,x\n",
        "torture/kills": "work,seed,round,kills,of workers,orphans,done twice,same bytes\n"
        "scan,0,0,3,0,0,0,True\nscan,0,1,1,0,1,0,True\n",
        "torture/forgeries": "kind,tried,accepted falsehoods,refused by a,crashes of a\n"
        "raw,5,1,3,1\nhead,2,0,2,0\n",
        "bench/oracle": "feature_set,classes,false_verdicts\nbox,2,0\nball,1,1\n",
        "bench/mutants": "module,first,verdict,reason\nx/a,SURVIVED,SURVIVED,equal\n"
        "x/a,SURVIVED,SURVIVED,\nx/a,SURVIVED,killed,\nx/b,killed,killed,\n",
        "bench/near_ties": "rounding_bounds,evidence,attempts,falsely_accepted\n"
        "as they are,weights,5,0\nas they are,points,5,1\nall zero,weights,5,3\n",
    }
    for name, text in tables.items():
        path = tmp_path / "results" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    table = fuzzers.summary(tmp_path).set_index("fuzzer")
    tried = table[["tried", "wrong"]].to_numpy().tolist()
    assert tried == [[2, 1], [4, 1], [7, 2], [3, 1], [10, 1], [4, 1]]
    assert "it wins 3)" in table.index[4]
    assert table.loc["hostile hubs", "slowest (s)"] == 20.1
    assert fuzzers.kills(tmp_path).to_numpy().tolist() == [["scan", 2, 4, 0, 0, 0, 1]]
    assert "| kills | 4 | 1 |  |  |  |" in readme.markdown(table.reset_index())


def test_each_mutant_breaks_one_place_under_a_name_of_its_own(repository, tmp_path):
    tool = runpy.run_path(str(repository / "tools" / "mutants.py"))
    source = "def f(a, b):\n    if a > 1 and b > 1:\n        return True\n    return True\n"
    found, module = tool["mutants"](source), "softgeom/rounding.py"
    assert len(found) == 7
    assert len({mutant.key(module) for mutant in found}) == 7
    broken = [mutant.applied(source) for mutant in found]
    assert len({ast.unparse(tree) for tree in broken} | {source.strip()}) == 8
    there: dict = {}
    exec(compile(source, "f.py", "exec"), there)
    assert there["f"](0, 2) is True
    answers = set()
    for tree in broken:  # into the function that others may have imported
        tool["_put_into"]([there["f"]], compile(tree, "f.py", "exec"))
        answers.add(tuple(there["f"](a, b) for a, b in ((2, 2), (0, 2), (2, 0), (1, 1))))
    assert len(answers) > 1
    verdicts = ("SURVIVED", "SURVIVED", "killed", "gone")
    known = {
        mutant.key(module): {"first": "SURVIVED", "verdict": verdict, "reason": "", "checked": ""}
        for mutant, verdict in zip(found, verdicts, strict=False)
    }
    known[found[0].key(module)] |= {"reason": "why", "checked": "right"}
    tool["_count"].__globals__["COUNTS"] = tmp_path / "counts.csv"
    tool["_count"](known, {name: [] for name in tool["MODULES"]} | {module: found})
    with (tmp_path / "counts.csv").open(encoding="utf-8", newline="") as file:
        rows = {row[0]: row[1:] for row in csv.reader(file)}
    assert rows["rounding.py"] == rows["all that is trusted"] == ["7", "3", "3", "2", "1", "1"]
    assert set(rows["layer.py"]) == {"0"}


def test_committed_tables_hold_what_was_asked_for(repository):
    """At least 250 kinds of hostile input and 60 of hubs, none answered wrongly."""
    counts = {}
    for family in ("files", "hub", "results"):
        table = repository / "results" / "torture" / f"{family}.csv"
        with table.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        counts[family] = len({(row["kind"], row["case"]) for row in rows})
        assert not [row for row in rows if row["wrong"]]
        assert max(float(row["seconds"]) for row in rows) < 20
    assert counts["files"] >= 250
    assert counts["hub"] >= 60


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, ""),
        ({"code": 0}, "accepted"),
        ({"code": None}, "hangs"),
        ({"code": -9}, "killed"),
        ({"code": 70}, "fault"),
        ({"error": "softgeom: a\nsoftgeom: b\n"}, "2 lines"),
        ({"error": "softgeom: \x1b[31m\n"}, "control characters"),
        ({"memory": 200 * 2**20}, "105 MB"),
    ],
)
def test_what_is_wrong_is_seen(changed, wrong):
    """The judge itself: a right answer passes, each fault alone is named."""
    usual = dict(code=1, seconds=0.1, memory=100 * 2**20, out="", error="softgeom: no.\n")
    outcome = trial.Outcome(**(usual | changed))
    found = outcome.miss(trial.ERROR, 100 * 2**20, 0)
    assert found.startswith(wrong) if wrong else not found


def test_work_done_twice_is_seen(tmp_path):
    work = kills.Work([], (), ("blocks/*.npz", "steps.log"))
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "a.npz").write_text("one")
    (tmp_path / "steps.log").write_text("40\n80\n")
    before = kills._finished(work, tmp_path)
    (tmp_path / "blocks" / "b.npz").write_text("new work is no repeated work")
    (tmp_path / "steps.log").write_text("40\n80\n120\n")
    assert kills._changed(before, kills._finished(work, tmp_path)) == 0
    (tmp_path / "blocks" / "fresh").write_text("one")
    (tmp_path / "blocks" / "fresh").replace(tmp_path / "blocks" / "a.npz")
    (tmp_path / "steps.log").write_text("40\n80\n120\n80\n")
    assert kills._changed(before, kills._finished(work, tmp_path)) == 2
