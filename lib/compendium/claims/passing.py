"""What notebooks pass to the register, read from their code without running it.

A call `book.claim("003-theorem-2", slope=...)` must name a claim of the register, pass exactly the
evidence of its rule, and stand in the notebook that the register names. A call whose id or evidence
is only known at run time (`book.claim(id, **evidence)`) is reported, not judged.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from compendium import codebase
from compendium.claims.register import Claim
from compendium.claims.rule import listed


def check(register: Mapping[str, Claim], notebooks: list[Path]) -> tuple[list[str], list[str]]:
    """Faults, and calls that can be judged only at run time; each in one sentence."""
    faults, unknown = list[str](), list[str]()
    passed, dynamic = set[str](), set[str]()
    for notebook in notebooks:
        for number, code in codebase.cells(notebook).items():
            for _, id, given in codebase.calls(ast.parse(code), "claim"):
                where = f"{notebook.stem}, cell {number}"
                if id is None or None in given:
                    unknown.append(f"{where}: {id or 'a claim whose id'} is known only at run time")
                if id is None:
                    dynamic.add(notebook.stem)
                    continue
                passed.add(id)
                faults += [f"{where}: {f}" for f in _faults(register, id, notebook.stem, given)]
    faults += [
        f"{claim.id}: {claim.notebook} never passes its evidence"
        for claim in register.values()
        if claim.id not in passed and claim.notebook not in dynamic
    ]
    return faults, unknown


def _faults(
    register: Mapping[str, Claim], id: str, notebook: str, given: Collection[str | None]
) -> Iterator[str]:
    """What is wrong with one call; None among the names that it gives is a mapping."""
    if id not in register:
        yield f"the register has no claim {id!r}"
        return
    claim, takes = register[id], register[id].rule.evidence
    if claim.notebook != notebook:
        yield f"the register says that {claim.notebook} passes the evidence of {id}"
    if unknown := [name for name in given if name and name not in takes]:
        yield f"{id} has no evidence {listed(unknown)}; its rule takes {listed(takes)}"
    missing = [name for name in takes if name not in given]
    if missing and None not in given:
        yield f"{id} also needs the evidence {listed(missing)}"
