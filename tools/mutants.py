"""Mutation testing of what every verdict stands on: break one expression, run the tests that reach
it, list what no test noticed.

    python tools/mutants.py --each 5 [--only hull]   draw from those that were never tried, and try
    python tools/mutants.py --again [--only hull]    try again what survived without reason
    python tools/mutants.py --replaced 120           draw from what is not trusted, by lines of code

A small runner of our own: mutmut and cosmic-ray start a Python for each mutant, which here costs
more than the tests. This one imports the library and its tests once, forks for each mutant, and
puts the broken code into the functions that are there; only what an import computes (a constant, a
default) needs an import of its own. One run at first learns which test reaches which line and what
it costs: a mutant meets the tests that reach it, those first that have noticed most, then
those that reach little else, up to `--seconds` of them.

results/bench/mutants.csv keeps every mutant that was tried: what came of it at first, and now
("gone" where the expression is no longer there), the reason why a survivor may live, and what a
second reader, who did not write the reason, found it to be worth; both stay.
results/bench/mutant_counts.csv has how many mutants each module has, and how many of them were
tried.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import csv
import gc
import importlib
import math
import multiprocessing
import os
import random
import resource
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOME = "softgeom/bottleneck"
TRUSTED = (  # what docs/trust.md trusts
    f"{HOME}/certifying/kernel.py",
    f"{HOME}/certifying/checker.py",
    f"{HOME}/certifying/partial.py",
    f"{HOME}/certifying/hull.py",
    f"{HOME}/certifying/slack.py",
    f"{HOME}/certifying/twins.py",
    f"{HOME}/certifying/order.py",
    f"{HOME}/certifying/evidence_file.py",
    f"{HOME}/certifying/folder.py",
    f"{HOME}/certifying/verdict.py",
    f"{HOME}/ceilings/bound.py",
    f"{HOME}/scaling.py",
    "softgeom/features/ball.py",
    "softgeom/features/box.py",
    "softgeom/features/ellipsoid.py",
    "softgeom/features/feature_set.py",
    "softgeom/features/unbounded.py",
    "softgeom/layer.py",
    "softgeom/rounding.py",
)
REPLACED = {  # what proposes, what reads models, and the kit that judges claims
    HOME: ("blocks", "problem", "pruning", "routes", "rows", "scan_result", "scanner", "widening"),
    **dict.fromkeys((f"{HOME}/proving", f"{HOME}/searching", f"{HOME}/asking"), ("*",)),
    "softgeom/checkpoints": (
        *("loading", "formats", "live", "opened", "tensors", "choosing"),
        *("conventions", "activation", "labels"),
    ),
    "compendium": ("book", "keeping", "making", "statistics"),
    "compendium/claims": ("*",),
}
MODULES = (
    *TRUSTED,
    *(
        path.relative_to(ROOT / "lib").as_posix()
        for folder, names in REPLACED.items()
        for name in names
        for path in sorted((ROOT / "lib" / folder).glob(f"{name}.py"))
    ),
)
TESTS = (
    *("bottleneck", "forgeries", "test_features.py", "test_layer.py"),
    *("checkpoints", "compendium/claims"),
    *(f"compendium/test_{name}.py" for name in ("book", "keeping", "scans", "statistics")),
)
MOST = 12  # of a module, where mutants are drawn by lines
COLUMNS = (
    *("module", "line", "statement", "before", "after"),
    *("first", "verdict", "reason", "checked"),
)
KEYS = ("module", "statement", "before", "after")
TABLE, COUNTS = (ROOT / "results/bench" / name for name in ("mutants.csv", "mutant_counts.csv"))
MEMORY = 2**33  # bytes that a mutant may take
Key = tuple[str, ...]
HEAVY = (
    *("hypothesis", "pandas", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.spatial"),
    *("joblib", "highspy"),
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

    lines: range  # of the statement
    statement: str
    before: str
    after: str
    place: int  # of the expression among the nodes of the module
    new: ast.AST
    at_import: bool  # in no function: an import evaluates it

    def key(self, module: str) -> Key:
        """What it is called in the table."""
        return (module, self.statement, self.before, self.after)

    def applied(self, source: str) -> ast.Module:
        """The source with the expression broken, line by line as it was."""
        tree = ast.parse(source)
        target = next(node for n, node in enumerate(ast.walk(tree)) if n == self.place)
        return ast.fix_missing_locations(_Replace(target, self.new).visit(tree))


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module.

    Annotations and docstrings are left alone, and so are the text of an error and `strict` of a
    zip: it asserts, and changes no result.
    """
    tree = ast.parse(source)
    skipped = {id(part) for node in ast.walk(tree) for part in _left_alone(node)}
    called = {id(part) for node in ast.walk(tree) for part in _evaluated_later(node)}
    statements = _statements(tree)
    found, seen = [], collections.Counter[Key]()
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in skipped or not isinstance(node, ast.expr):
            continue
        for new in variants(node):
            statement, lines = statements[id(node)]
            words = (statement, ast.unparse(node), ast.unparse(new))
            seen[words] += 1
            before = words[1] if seen[words] == 1 else f"{words[1]} #{seen[words]}"
            at_import = id(node) not in called
            found.append(Mutant(lines, statement, before, words[2], place, new, at_import))
    return found


def _statements(tree: ast.Module) -> dict[int, tuple[str, range]]:
    """The first line of the innermost statement around each node as text, and where it stands in
    the source, by id.
    """
    found: dict[int, tuple[str, range]] = {}
    for node in ast.walk(tree):  # outer ones first
        if isinstance(node, ast.stmt):
            lines = ast.unparse(node).splitlines()
            decorators = next(n for n, line in enumerate(lines) if not line.startswith("@"))
            text = " ".join(lines[: decorators + 1])[:160]
            inner = getattr(node, "body", None)
            end = inner[0].lineno if inner else (node.end_lineno or node.lineno) + 1
            place = range(node.lineno, max(end, node.lineno + 1))
            found.update((id(part), (text, place)) for part in ast.walk(node))
    return found


def _left_alone(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("annotation", "returns"):
        if getattr(node, name, None) is not None:
            yield from ast.walk(getattr(node, name))
    if isinstance(node, ast.Call):
        yield from (word.value for word in node.keywords if word.arg == "strict")
    if isinstance(node, ast.Raise):
        texts = (part for part in ast.walk(node) if isinstance(part, ast.JoinedStr))
        yield from (part for text in texts for part in ast.walk(text))


def _evaluated_later(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        body = node.body if isinstance(node.body, list) else [node.body]
        yield from (part for each in body for part in ast.walk(each))


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, new: ast.AST) -> None:
        self.target, self.new = target, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.target else self.generic_visit(node)


# ---- Tests


class Test(NamedTuple):
    """What a test costs, and which lines of each module it reaches."""

    seconds: float
    lines: dict[str, set[int]]


class _Collected:
    """Does something with the tests that pytest has collected, instead of running them."""

    def __init__(self, work: Callable[[pytest.Session], None]) -> None:
        self.work = work

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.work(session)
        return True


def with_tests(work: Callable[[pytest.Session], None], files: Iterable[str] = ()) -> None:
    """Import softgeom and its tests, or those in some files, and do something with them."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "lib"))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of what was imported before
    options = ("-n0", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=forgetful")
    names = [str(ROOT / name) for name in files or [f"tests/{name}" for name in TESTS]]
    pytest.main([*quiet, *options, *names], plugins=[_Collected(work)])


def forked(work: Callable[[Any], None], seconds: float | None = None) -> Iterator[Any]:
    """What `work` hands over in a fork of this process, one after the other, until it ends, dies,
    or has taken so many seconds of the processor.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)

    def child() -> None:
        if seconds:  # not by the clock: a busy machine would kill what is only slow
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), -1))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        work(theirs.send)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    theirs.close()
    try:
        while ours.poll(seconds and 100 * seconds):
            yield ours.recv()
    except EOFError:
        return
    finally:
        process.kill()
        process.join()


def run(session: pytest.Session, names: list[str]) -> str:
    """The first of these tests that fails, or none."""
    by_name = {item.nodeid: item for item in session.items}
    items = [by_name[name] for name in names]
    for item, following in zip_longest(items, items[1:]):  # of none, none fails
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return item.nodeid
    return ""


def learn(hand_over: Callable[[dict[str, Test]], None]) -> None:
    """Run every test once, under a trace of the lines of our modules."""
    files = {str(ROOT / "lib" / name): name for name in MODULES}
    reached: dict[str, set[int]] = collections.defaultdict(set)

    def line(frame: types.FrameType, event: str, _: Any) -> Any:
        reached[files[frame.f_code.co_filename]].add(frame.f_lineno)
        return line

    def call(frame: types.FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename in files else None

    def work(session: pytest.Session) -> None:
        tests = {}
        for item in session.items:
            reached.clear()
            began = time.process_time()
            sys.settrace(call)
            failed = run(session, [item.nodeid])
            sys.settrace(None)
            if failed:
                return
            tests[item.nodeid] = Test(time.process_time() - began, dict(reached))
        hand_over(tests)

    with_tests(work)


# ---- Trying them


def come_of(
    drawn: list[tuple[str, Mutant]], tests: dict[str, Test], most: float
) -> Iterator[tuple[str, Mutant, str]]:
    """Each mutant, after its module, with what comes of it: killed, killed (time), SURVIVED."""
    paths = {module: ROOT / "lib" / module for module, _ in drawn}
    sources = {module: path.read_text(encoding="utf-8") for module, path in paths.items()}
    noticed = collections.Counter[str]()  # by which test

    def judged(module: str, mutant: Mutant, attempt: Callable[..., None]) -> str:
        names, seconds = _chosen(tests, noticed, module, mutant, most)
        path = str(paths[module])
        code = compile(mutant.applied(sources[module]), path, "exec")
        tried = forked(lambda tell: attempt(tell, path, code, names), 3 * seconds + 10)
        killer = next(tried, None)
        tried.close()
        noticed[killer] += 1
        return "SURVIVED" if killer == "" else "killed" if killer else "killed (time)"

    def import_anew(
        tell: Callable[[str], None], path: str, code: types.CodeType, names: list[str]
    ) -> None:
        read = SourceFileLoader.get_code
        SourceFileLoader.get_code = lambda self, name: (  # type: ignore[method-assign]
            code if self.path == path else read(self, name)
        )
        files = dict.fromkeys(name.partition("::")[0] for name in names)
        with_tests(lambda session: tell(run(session, names)), files)

    def try_functions(hand_over: Callable[[str], None]) -> None:
        def work(session: pytest.Session) -> None:
            there = [f for f in gc.get_objects() if type(f) is types.FunctionType]

            def put_in(
                tell: Callable[[str], None], path: str, code: types.CodeType, names: list[str]
            ) -> None:
                _put_into([f for f in there if f.__code__.co_filename == path], code)
                tell(run(session, names))

            for module, mutant in drawn:
                if not mutant.at_import:
                    hand_over(judged(module, mutant, put_in))

        with_tests(work)

    verdicts = forked(try_functions)
    for module, mutant in drawn:
        anew = mutant.at_import
        yield module, mutant, judged(module, mutant, import_anew) if anew else next(verdicts)


def _chosen(
    tests: dict[str, Test],
    noticed: collections.Counter[str],
    module: str,
    mutant: Mutant,
    most: float,
) -> tuple[list[str], float]:
    """The tests that reach a mutant, those first that noticed most, then those that reach least
    else; and the seconds that they take, about ``most`` at most.
    """
    reach = {name: sum(map(len, test.lines.values())) for name, test in tests.items()}
    chosen, seconds = [], 0.0
    for name in sorted(tests, key=lambda name: (-noticed[name], reach[name])):
        reached = tests[name].lines.get(module)
        if reached and (mutant.at_import or not reached.isdisjoint(mutant.lines)):
            chosen.append(name)
            seconds += tests[name].seconds
            if seconds > most:
                break
    return chosen, seconds


def _put_into(functions: list[types.FunctionType], code: types.CodeType) -> None:
    """Give the functions of a module their code in a broken one."""
    broken, left = {}, [code]
    while left:
        one = left.pop()
        broken[one.co_qualname, one.co_firstlineno] = one
        left += [part for part in one.co_consts if isinstance(part, types.CodeType)]
    for function in functions:
        name, first = function.__code__.co_qualname, function.__code__.co_firstlineno
        if "<locals>" not in name:  # the call around it makes it anew
            function.__code__ = broken[name, first]


def main() -> None:
    """Try a sample, or survivors again, and keep the tables up to date as it goes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=5, help="mutants per module")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="modules with one of these in their name"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of tests for each mutant")
    parser.add_argument(
        "--replaced", type=int, metavar="N", help="so many of what is not trusted, by lines"
    )
    parser.add_argument(
        "--again", action="store_true", help="survivors without a reason, instead of a sample"
    )
    options = parser.parse_args()
    for name in HEAVY:
        importlib.import_module(name)
    with TABLE.open(encoding="utf-8", newline="") as file:
        known = {tuple(row[name] for name in KEYS): row for row in csv.DictReader(file)}
    every = {module: mutants((ROOT / "lib" / module).read_text("utf-8")) for module in MODULES}
    _bury(known, {mutant.key(module) for module in every for mutant in every[module]})
    tests = next(forked(learn), None)
    if tests is None:
        sys.exit("The tests fail without any mutant: nothing can be learned.")
    drawn, others = [], MODULES[len(TRUSTED) :]
    lines = {module: (ROOT / "lib" / module).read_bytes().count(b"\n") for module in others}
    share = (options.replaced or 0) / sum(lines.values())
    for module in (name for name in MODULES if any(word in name for word in options.only)):
        fresh = [m for m in every[module] if _is_new(known.get(m.key(module)))]
        many = options.each
        if options.replaced is not None:
            many = min(round(share * lines.get(module, 0)), MOST)
        some = random.Random(0).sample(fresh, min(many, len(fresh)))
        if options.again:
            some = [m for m in every[module] if _is_open(known.get(m.key(module)))]
        drawn += [(module, mutant) for mutant in some]
    for module, mutant, verdict in come_of(drawn, tests, options.seconds):
        key = mutant.key(module)
        row = dict.fromkeys(COLUMNS, "") | dict(zip(KEYS, key, strict=True))
        row |= known.get(key, {"first": verdict})
        known[key] = row | {"line": str(mutant.lines.start), "verdict": verdict}
        said = f"{mutant.before}  ->  {mutant.after}"
        print(f"{verdict:13} {module}:{mutant.lines.start}  {said}", flush=True)
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
        groups = {module.removeprefix("softgeom/"): [module] for module in TRUSTED}
        groups["all that is trusted"] = list(TRUSTED)
        for module in MODULES[len(TRUSTED) :]:
            folder = str(Path(module).parent).removeprefix("softgeom/")
            groups.setdefault(f"not trusted: {folder}", []).append(module)
        for name, modules in groups.items():
            keys = [mutant.key(module) for module in modules for mutant in every[module]]
            tried = [known[key] for key in keys if not _is_new(known.get(key))]
            alive = [row for row in tried if row["verdict"] == "SURVIVED"]
            reason = [row for row in alive if row["reason"]]
            first = sum(row["first"] == "SURVIVED" for row in tried)
            checked = sum(bool(row["checked"]) for row in reason)
            writer.writerow([name, len(keys), len(tried), first, len(alive), len(reason), checked])


if __name__ == "__main__":
    main()
