"""Mutation testing of what every verdict stands on: break one expression, run its tests, list what
no test noticed.

    python tools/mutants.py --each 5 [--only hull]   draw from those that were never tried, and try
    python tools/mutants.py --again [--only hull]    try again what survived without reason

A small runner of our own: mutmut and cosmic-ray mutate a whole package and run a whole suite for
each, hours here; this one draws a sample per module, runs that module's tests alone and stops at
the first failure. results/bench/mutants.csv keeps every mutant that was tried (after the tests have
passed without one): what came of it at first, and now ("gone" where the expression is no longer
there), the reason why a survivor may live, and what a second reader, who did not write the reason,
found it to be worth; both stay. results/bench/mutant_counts.csv has how many mutants each module
has, and how many of them were tried.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import csv
import importlib
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOME = "softgeom/bottleneck"
KERNEL = ("test_kernel.py", "test_bounds.py", "test_verdict.py")
TRUSTED = {  # what docs/trust.md trusts
    f"{HOME}/certifying/kernel.py": ("test_kernel.py", "test_folder.py", "test_verdict.py"),
    f"{HOME}/certifying/checker.py": (*KERNEL, "test_order.py", "test_scale.py", "test_oracle.py"),
    f"{HOME}/certifying/hull.py": (*KERNEL, "test_refine.py", "test_scale.py", "test_oracle.py"),
    f"{HOME}/certifying/slack.py": ("test_slack.py", "test_kernel.py", "test_oracle.py"),
    f"{HOME}/certifying/twins.py": ("test_kernel.py",),
    f"{HOME}/certifying/order.py": ("test_kernel.py", "test_order.py", "test_label_sets.py"),
    f"{HOME}/certifying/evidence_file.py": ("test_evidence_file.py", "test_folder.py"),
    f"{HOME}/certifying/folder.py": ("test_folder.py",),
    f"{HOME}/certifying/verdict.py": KERNEL,
    f"{HOME}/ceilings/bound.py": ("test_ceilings.py",),
    f"{HOME}/scaling.py": (*KERNEL, "test_scale.py", "test_oracle.py"),
    "softgeom/features/ball.py": ("../test_features.py", *KERNEL),
    "softgeom/features/box.py": ("../test_features.py", *KERNEL),
    "softgeom/features/ellipsoid.py": ("../test_features.py", *KERNEL, "test_oracle.py"),
    "softgeom/features/feature_set.py": ("../test_features.py", "test_evidence_file.py"),
    "softgeom/features/unbounded.py": ("../test_features.py", *KERNEL),
    "softgeom/layer.py": ("../test_layer.py", "test_verdict.py", "test_evidence_file.py"),
    "softgeom/rounding.py": (*KERNEL, "test_scale.py", "test_oracle.py"),
}
TESTS = TRUSTED | {
    f"{HOME}/searching/twins.py": ("test_oracle.py", "test_scale.py"),
    f"{HOME}/searching/partial.py": ("test_partial.py",),
    f"{HOME}/asking/experts.py": ("test_experts.py", "test_kernel.py"),
    f"{HOME}/proving/decide.py": ("test_order.py", "test_label_sets.py", "test_candidates.py"),
    f"{HOME}/blocks.py": ("test_folder.py", "test_evidence_file.py"),
    f"{HOME}/problem.py": ("test_search.py", "test_scale.py", "test_oracle.py"),
    f"{HOME}/scan_result.py": ("test_around_a_scan.py", "test_folder.py", "test_kernel.py"),
    f"{HOME}/scanner.py": (
        "test_folder.py",
        "test_scan.py",
        "test_shared_basis.py",
        "test_scale.py",
        "test_oracle.py",
    ),
}
COLUMNS = [
    "module",
    "line",
    "statement",
    "before",
    "after",
    "first",
    "verdict",
    "reason",
    "checked",
]
KEYS = ("module", "statement", "before", "after")
TABLE, COUNTS = (ROOT / "results/bench" / name for name in ("mutants.csv", "mutant_counts.csv"))
Key = tuple[str, ...]
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


class Mutant(NamedTuple):
    """One broken expression of a module, the same one again (``#2``) where a statement or its like
    has it more than once.
    """

    line: int
    statement: str
    before: str
    after: str
    place: int  # of the expression among the nodes of the module
    new: ast.AST

    def key(self, module: str) -> Key:
        """What it is called in the table."""
        return (module, self.statement, self.before, self.after)

    def applied(self, source: str) -> str:
        """The source with the expression broken."""
        tree = ast.parse(source)
        target = next(node for n, node in enumerate(ast.walk(tree)) if n == self.place)
        return ast.unparse(_Replace(target, self.new).visit(tree))


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module.

    Annotations and docstrings are left alone, and so is `strict` of a zip: it asserts, and changes
    no result.
    """
    tree = ast.parse(source)
    skipped = {id(part) for node in ast.walk(tree) for part in _left_alone(node)}
    statements = _statements(tree)
    found, seen = [], collections.Counter[Key]()
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in skipped or not isinstance(node, ast.expr):
            continue
        for new in variants(node):
            words = (statements[id(node)], ast.unparse(node), ast.unparse(new))
            seen[words] += 1
            before = words[1] if seen[words] == 1 else f"{words[1]} #{seen[words]}"
            found.append(Mutant(node.lineno, words[0], before, words[2], place, new))
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


def survives(module: str, text: str, library: Path, seconds: float | None = None) -> str:
    """ "killed", "SURVIVED", or "killed (time)" when the tests do not end in so many seconds."""
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
        process.join(seconds)
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
    sys.exit(pytest.main([*quiet, *options, *tests], plugins=[_CheapestFirst()]))


class _CheapestFirst:
    """Most mutants fall to a quick test; tests/conftest.py puts the dearest files first."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.reverse()


def main() -> None:
    """Try a sample, or survivors again, and keep the tables up to date as it goes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=5, help="mutants per module")
    parser.add_argument("--only", default="", help="modules with this in their name")
    parser.add_argument(
        "--again", action="store_true", help="survivors without a reason, instead of a sample"
    )
    options = parser.parse_args()
    for name in HEAVY:
        importlib.import_module(name)
    with TABLE.open(encoding="utf-8", newline="") as file:
        known = {tuple(row[name] for name in KEYS): row for row in csv.DictReader(file)}
    sources = {module: (ROOT / "lib" / module).read_text(encoding="utf-8") for module in TESTS}
    every = {module: mutants(source) for module, source in sources.items()}
    _bury(known, {mutant.key(module) for module in every for mutant in every[module]})
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "lib"
        shutil.copytree(ROOT / "lib", library, ignore=shutil.ignore_patterns("__pycache__"))
        for module in (name for name in TESTS if options.only in name):
            fresh = [m for m in every[module] if _is_new(known.get(m.key(module)))]
            drawn = random.Random(0).sample(fresh, min(options.each, len(fresh)))
            if options.again:
                drawn = [m for m in every[module] if _is_open(known.get(m.key(module)))]
            if not drawn:
                continue
            began = time.monotonic()
            if survives(module, ast.unparse(ast.parse(sources[module])), library) != "SURVIVED":
                sys.exit(f"The tests of {module} fail without any mutant: nothing can be learned.")
            seconds = 10 * (time.monotonic() - began)
            for mutant in drawn:
                verdict = survives(module, mutant.applied(sources[module]), library, seconds)
                key = mutant.key(module)
                row = dict.fromkeys(COLUMNS, "") | dict(zip(KEYS, key, strict=True))
                row |= known.get(key, {"first": verdict})
                known[key] = row | {"line": str(mutant.line), "verdict": verdict}
                said = f"{mutant.before}  ->  {mutant.after}"
                print(f"{verdict:13} {module}:{mutant.line}  {said}", flush=True)
                _write(known)
    _write(known)
    _count(known, every)


def _is_new(row: dict[str, str] | None) -> bool:
    return row is None or row["verdict"] == "gone"


def _is_open(row: dict[str, str] | None) -> bool:
    return row is not None and row["verdict"] == "SURVIVED" and not row["reason"]


def _bury(known: dict[Key, dict[str, str]], there: set[Key]) -> None:
    """Call mutants of expressions that no module has any longer gone."""
    for key in known.keys() - there:
        known[key]["verdict"] = "gone"


def _write(known: dict[Key, dict[str, str]]) -> None:
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            sorted(known.values(), key=lambda row: (row["module"], int(row["line"]), row["after"]))
        )


def _count(known: dict[Key, dict[str, str]], every: dict[str, list[Mutant]]) -> None:
    """Write how many mutants each module has, how many of them were tried, and what came of it."""
    with COUNTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["module", "mutants", "tried", "survived at first", "survive now",
        "of these with a reason", "checked by a second reader"])  # fmt: skip
        for name, modules in (
            *((module.removeprefix("softgeom/"), [module]) for module in every),
            ("all that is trusted", list(TRUSTED)),
        ):
            keys = [mutant.key(module) for module in modules for mutant in every[module]]
            tried = [known[key] for key in keys if not _is_new(known.get(key))]
            alive = [row for row in tried if row["verdict"] == "SURVIVED"]
            reason = [row for row in alive if row["reason"]]
            first = sum(row["first"] == "SURVIVED" for row in tried)
            checked = sum(bool(row["checked"]) for row in reason)
            writer.writerow([name, len(keys), len(tried), first, len(alive), len(reason), checked])


if __name__ == "__main__":
    main()
