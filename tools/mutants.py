"""Mutation testing of what every verdict stands on: break one expression, run its tests, list what
no test noticed.

    python tools/mutants.py --each 5 --seed 0 [--only hull]   draw mutants, try those that are new
    python tools/mutants.py --again [--only hull]             try again what survived without reason

A small runner of our own: mutmut and cosmic-ray mutate a whole package and run a whole suite for
each, hours here; this one draws a sample per module, runs that module's tests alone and stops at
the first failure. results/bench/mutants.csv keeps every mutant that was tried (after the tests have
passed without one): what came of it at first, and now ("gone" where the expression is no longer
there), and the reason why a survivor may live; reasons that are there stay.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import importlib
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOME = "softgeom/bottleneck"
KERNEL = ("test_kernel.py", "test_bounds.py", "test_verdict.py")
TESTS = {
    f"{HOME}/certifying/kernel.py": ("test_kernel.py", "test_folder.py", "test_verdict.py"),
    f"{HOME}/certifying/checker.py": (*KERNEL, "test_order.py", "test_scale.py", "test_oracle.py"),
    f"{HOME}/certifying/hull.py": (*KERNEL, "test_refine.py", "test_scale.py", "test_oracle.py"),
    f"{HOME}/certifying/slack.py": ("test_slack.py", "test_kernel.py", "test_oracle.py"),
    f"{HOME}/certifying/twins.py": ("test_kernel.py",),
    f"{HOME}/searching/twins.py": ("test_oracle.py", "test_scale.py"),
    f"{HOME}/certifying/order.py": ("test_kernel.py", "test_order.py", "test_label_sets.py"),
    f"{HOME}/certifying/evidence_file.py": ("test_evidence_file.py", "test_folder.py"),
    f"{HOME}/certifying/folder.py": ("test_folder.py",),
    f"{HOME}/searching/partial.py": ("test_partial.py",),
    f"{HOME}/asking/experts.py": ("test_experts.py", "test_kernel.py"),
    f"{HOME}/proving/decide.py": ("test_order.py", "test_label_sets.py", "test_candidates.py"),
    f"{HOME}/blocks.py": ("test_folder.py", "test_evidence_file.py"),
    "softgeom/features/ball.py": ("../test_features.py", *KERNEL),
    "softgeom/features/box.py": ("../test_features.py", *KERNEL),
    "softgeom/features/ellipsoid.py": ("../test_features.py", *KERNEL, "test_oracle.py"),
    "softgeom/features/feature_set.py": ("../test_features.py", "test_evidence_file.py"),
    "softgeom/features/unbounded.py": ("../test_features.py", *KERNEL),
    "softgeom/rounding.py": (*KERNEL, "test_scale.py", "test_oracle.py"),
    f"{HOME}/scaling.py": (*KERNEL, "test_scale.py", "test_oracle.py"),
    f"{HOME}/problem.py": ("test_search.py", "test_scale.py", "test_oracle.py"),
    f"{HOME}/scan_result.py": ("test_folder.py", "test_kernel.py"),
    f"{HOME}/scanner.py": (
        "test_folder.py",
        "test_scan.py",
        "test_shared_basis.py",
        "test_scale.py",
        "test_oracle.py",
    ),
}
COLUMNS = ["module", "line", "statement", "before", "after", "first", "verdict", "reason"]
KEYS = ("module", "statement", "before", "after")
TABLE = ROOT / "results/bench/mutants.csv"
SECONDS = 600
HEAVY = (
    "hypothesis",
    "pandas",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.spatial",
    "joblib",
    "highspy",
)
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
}
NAMES = {
    "all": "any",
    "any": "all",
    "max": "min",
    "min": "max",
    "maximum": "minimum",
    "minimum": "maximum",
}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Broken copies of one expression."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in COMPARISONS:
        new.ops[0] = COMPARISONS[type(new.ops[0])]()
        yield new
    elif isinstance(new, ast.BinOp) and type(new.op) in ARITHMETIC:
        new.op = ARITHMETIC[type(new.op)]()
        yield new
        yield copy.deepcopy(node.left)  # type: ignore[attr-defined]
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        yield new
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub | ast.Invert):
        yield new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        yield ast.Constant(not new.value)
    elif (
        isinstance(new, ast.Constant)
        and isinstance(new.value, int | float)
        and (new.value or type(new.value) is int)
    ):
        yield ast.Constant(new.value + 1 if isinstance(new.value, int) else new.value * 100)
    elif isinstance(new, ast.Attribute) and new.attr in NAMES:
        new.attr = NAMES[new.attr]
        yield new


def mutants(source: str) -> list[tuple[int, str, str, str, str]]:
    """(line, statement, before, after, whole source) of every mutant of a module.

    Annotations and docstrings are left alone, and so is `strict` of a zip: it asserts, and changes
    no result.
    """
    tree = ast.parse(source)
    skipped = {id(part) for node in ast.walk(tree) for part in _left_alone(node)}
    statements = _statements(tree)
    found = []
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in skipped or not isinstance(node, ast.expr):
            continue
        for new in variants(node):
            other = ast.parse(source)
            target = next(n for k, n in enumerate(ast.walk(other)) if k == number)
            text = ast.unparse(_Replace(target, new).visit(other))
            found.append(
                (node.lineno, statements[id(node)], ast.unparse(node), ast.unparse(new), text)
            )
    return found


def _statements(tree: ast.Module) -> dict[int, str]:
    """The first line of the innermost statement around each node, by id."""
    found: dict[int, str] = {}
    for node in ast.walk(tree):  # outer ones first
        if isinstance(node, ast.stmt):
            lines = ast.unparse(node).splitlines()
            decorators = next(n for n, line in enumerate(lines) if not line.startswith("@"))
            text = " ".join(lines[: decorators + 1])[:160]
            found.update((id(part), text) for part in ast.walk(node))
    return found


def _left_alone(node: ast.AST) -> Iterator[ast.AST]:
    yield from _annotations(node)
    if isinstance(node, ast.Call):
        yield from (word.value for word in node.keywords if word.arg == "strict")


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("annotation", "returns"):
        if getattr(node, name, None) is not None:
            yield from ast.walk(getattr(node, name))


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, new: ast.AST) -> None:
        self.target, self.new = target, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.target else self.generic_visit(node)


def survives(module: str, text: str, library: Path) -> str:
    """ "killed", "SURVIVED", or "killed (time)" when the tests no longer end."""
    place = library / module
    whole = place.read_text(encoding="utf-8")
    place.write_text(text, encoding="utf-8")
    # which goes by seconds and size
    for compiled in place.parent.glob(f"__pycache__/{place.stem}.*"):
        compiled.unlink()
    tests = [str(ROOT / "tests/bottleneck" / name) for name in TESTS[module]]
    process = multiprocessing.get_context("fork").Process(target=_run, args=(tests, library))
    try:
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            return "killed (time)"
        return "killed" if process.exitcode else "SURVIVED"
    finally:
        place.write_text(whole, encoding="utf-8")


def _run(tests: list[str], library: Path) -> None:
    """The tests in a fork that has imported all but softgeom, with that folder's library."""
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(library)
    sys.path.insert(0, str(library))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of what was imported before
    options = ("-n0", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=forgetful")
    sys.exit(pytest.main([*quiet, *options, *tests]))


def main() -> None:
    """Try a sample, or survivors again, and keep the table up to date as it goes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=5, help="mutants per module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="modules with this in their name")
    parser.add_argument(
        "--again", action="store_true", help="survivors without a reason, instead of a sample"
    )
    options = parser.parse_args()
    for name in HEAVY:
        importlib.import_module(name)
    known: dict[tuple[str, ...], dict[str, str]] = {}
    if TABLE.is_file():
        with TABLE.open(encoding="utf-8", newline="") as file:
            known = {tuple(row[name] for name in KEYS): row for row in csv.DictReader(file)}
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "lib"
        shutil.copytree(ROOT / "lib", library, ignore=shutil.ignore_patterns("__pycache__"))
        for module in (name for name in TESTS if options.only in name):
            source = (ROOT / "lib" / module).read_text(encoding="utf-8")
            every = mutants(source)
            drawn = random.Random(options.seed).sample(every, min(options.each, len(every)))
            drawn = [mutant for mutant in drawn if (module, *mutant[1:4]) not in known]
            if options.again:
                _bury(known, module, {mutant[1:4] for mutant in every})
                drawn = [mutant for mutant in every if _is_open(known.get((module, *mutant[1:4])))]
            if drawn and survives(module, ast.unparse(ast.parse(source)), library) != "SURVIVED":
                sys.exit(
                    f"The tests of {module} fail, or do not end, without any mutant: nothing "
                    "can be learned."
                )
            for line, statement, before, after, text in drawn:
                verdict = survives(module, text, library)
                old = known.get(
                    (module, statement, before, after), {"first": verdict, "reason": ""}
                )
                row = (
                    module,
                    str(line),
                    statement,
                    before,
                    after,
                    old["first"],
                    verdict,
                    old["reason"],
                )
                known[module, statement, before, after] = dict(zip(COLUMNS, row, strict=True))
                print(f"{verdict:13} {module}:{line}  {before}  ->  {after}", flush=True)
                _write(known)
    _write(known)


def _is_open(row: dict[str, str] | None) -> bool:
    return row is not None and row["verdict"] == "SURVIVED" and not row["reason"]


def _bury(
    known: dict[tuple[str, ...], dict[str, str]], module: str, there: set[tuple[str, ...]]
) -> None:
    """Call mutants of expressions that the module no longer has gone."""
    for key, row in known.items():
        if key[0] == module and key[1:] not in there:
            row["verdict"] = "gone"


def _write(known: dict[tuple[str, ...], dict[str, str]]) -> None:
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            sorted(known.values(), key=lambda row: (row["module"], int(row["line"]), row["after"]))
        )


if __name__ == "__main__":
    main()
