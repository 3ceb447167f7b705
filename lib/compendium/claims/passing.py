"""What notebooks pass to the register, read from their code without running it.

A call `book.claim("003-theorem-2", slope=...)` must name a claim of the register, pass exactly the
evidence of its rule, and stand in the notebook that the register names. A call whose id or evidence
is only known at run time (`book.claim(id, **evidence)`) is reported, not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from compendium import codebase
from compendium.claims.register import Claim
from compendium.claims.rule import listed


@dataclass(frozen=True)
class Call:
    """One call of `claim` in a notebook: `id` None where it is computed, `open` where evidence
    comes from a mapping.
    """

    notebook: str
    cell: int
    id: str | None
    names: tuple[str, ...]
    open: bool

    @property
    def place(self) -> str:
        return f"{self.notebook}, cell {self.cell}"


def calls(notebook: Path) -> Iterator[Call]:
    """Every call of a method `claim` in the notebook's code cells."""
    for number, code in codebase.cells(notebook).items():
        for _, id, given in codebase.calls(code, "claim"):
            yield Call(notebook.stem, number, id, tuple(filter(None, given)), None in given)


def check(register: Mapping[str, Claim], notebooks: list[Path]) -> tuple[list[str], list[str]]:
    """Faults, and calls that can be judged only at run time; each in one sentence."""
    found = [call for notebook in notebooks for call in calls(notebook)]
    faults, unknown = [], []
    for call in found:
        if call.id is None or call.open:
            unknown.append(
                f"{call.place}: {call.id or 'a claim whose id'} is known only at run time"
            )
        if call.id is not None:
            faults += [f"{call.place}: {fault}" for fault in _faults(register, call)]
    passed = {call.id for call in found}
    dynamic = {call.notebook for call in found if call.id is None}
    faults += [
        f"{claim.id}: {claim.notebook} never passes its evidence"
        for claim in register.values()
        if claim.id not in passed and claim.notebook not in dynamic
    ]
    return faults, unknown


def _faults(register: Mapping[str, Claim], call: Call) -> Iterator[str]:
    assert call.id is not None
    if call.id not in register:
        yield f"the register has no claim {call.id!r}"
        return
    claim, takes = register[call.id], register[call.id].rule.evidence
    if claim.notebook != call.notebook:
        yield f"the register says that {claim.notebook} passes the evidence of {claim.id}"
    if unknown := [name for name in call.names if name not in takes]:
        yield f"{claim.id} has no evidence {listed(unknown)}; its rule takes {listed(takes)}"
    missing = [name for name in takes if name not in call.names]
    if missing and not call.open:
        yield f"{claim.id} also needs the evidence {listed(missing)}"
