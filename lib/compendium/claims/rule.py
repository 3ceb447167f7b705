"""Rules: what evidence a claim needs, the condition that each verdict takes, and the sentence that
says what was found.

One scale for every kind: *confirmed*, *not confirmed*, *open*. What no source states (`ours`) never
counts for or against a source. An experiment is open at a scale that cannot tell (`adequate`), and
on stand-in data.
"""

import math
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compendium.claims.condition import Condition, parse

VERDICTS = CONFIRMED, NOT_CONFIRMED, OPEN = "confirmed", "not confirmed", "open"
OTHERWISE = "otherwise"
_GATED = ("experiment", "ours")  # kinds that a scale can be too small for


@dataclass(frozen=True)
class Judgement:
    """What became of a claim: verdict, evidence, the finding in words, or why it is not judged."""

    id: str
    verdict: str
    evidence: dict[str, Any]
    says: str
    note: str = ""


@dataclass(frozen=True)
class Rule:
    """The rule of one claim; `read_rule` makes it from the register and checks it."""

    kind: str
    evidence: dict[str, str]  # names that a notebook must pass -> meaning
    # in the order in which they are asked; the last has no condition and is the rest
    verdicts: tuple[tuple[str, Condition | None], ...]
    why: str  # the reason of the thresholds
    says: str  # the finding as a format string over the evidence
    # what the scale must allow, each of them; none where any scale will do
    adequate: tuple[Condition, ...] = ()

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Every verdict that the rule can give."""
        named = tuple(verdict for verdict, _ in self.verdicts)
        return named + ((OPEN,) if self.adequate and OPEN not in named else ())

    @property
    def asked(self) -> frozenset[str]:
        """Names of the evidence that the conditions read."""
        conditions = [*self.adequate, *(condition for _, condition in self.verdicts)]
        return frozenset().union(*(condition.names for condition in conditions if condition))

    @property
    def printed(self) -> frozenset[str]:
        """Names of the evidence that the finding prints."""
        return frozenset(_names(self.says))

    def judge(self, id: str, evidence: Mapping[str, Any], *, stand_in: bool = False) -> Judgement:
        """Verdict and finding from the evidence: a number, truth value or text for every name of
        the rule, None where something could not be measured: an experiment that needs it is
        open. The claim's id is for messages. ValueError when evidence is missing, misspelt, not
        a number, or NaN.
        """
        takes = listed(self.evidence)
        if unknown := sorted(set(evidence) - set(self.evidence)):
            told = f"its rule has no evidence {listed(unknown)}; it takes {takes}"
            raise ValueError(f"claim {id}: {told}")
        if missing := [name for name in self.evidence if name not in evidence]:
            told = f"the evidence {listed(missing)} is missing; its rule takes {takes}"
            raise ValueError(f"claim {id}: {told}")
        values = {name: _scalar(id, name, evidence[name]) for name in self.evidence}
        verdict, note = self._decide(id, values, stand_in)
        if verdict == OPEN and any(values[name] is None for name in self.asked):
            return Judgement(id, verdict, values, "not measured yet")
        try:
            says = _Telling().vformat(self.says, (), values)
        except (ValueError, TypeError) as error:
            said = f"claim {id}: `says` cannot be written from this evidence ({error})"
            raise ValueError(said) from None
        return Judgement(id, verdict, values, says, note)

    def _decide(self, id: str, values: Mapping[str, Any], stand_in: bool) -> tuple[str, str]:
        if stand_in and self.kind == "experiment":
            return OPEN, "on stand-in data"
        if absent := sorted(name for name in self.asked if values[name] is None):
            if self.kind in _GATED:
                return OPEN, ""
            always = f"a claim of kind {self.kind} is always judged"
            raise ValueError(f"claim {id}: the evidence {listed(absent)} is None, and {always}")
        try:
            if failed := [part for each in self.adequate for part in each.failing(values)]:
                return OPEN, f"needs {'; '.join(failed)}"
            return next(v for v, asked in self.verdicts if asked is None or asked(values)), ""
        except ValueError as error:
            raise ValueError(f"claim {id}: {error}") from None


def read_rule(kind: str, entry: Mapping[str, Any]) -> tuple[Rule | None, list[str]]:
    """The rule of a register's entry that fits the schema, and what else is wrong with it, each in
    one sentence; no rule when there is a fault.
    """
    evidence, faults = dict(entry["evidence"]), list[str]()
    conditions = tuple(
        (verdict, None if text == OTHERWISE else _condition(str(text), evidence, faults))
        for verdict, text in entry["verdicts"].items()
    )
    *before, last = (text == OTHERWISE for text in entry["verdicts"].values())
    if any(before) or not last:
        faults.append(f"its last verdict, and no other, must be `{OTHERWISE}`")
    needed = [_condition(text, evidence, faults) for text in _flat(entry.get("adequate", []))]
    adequate = tuple(condition for condition in needed if condition is not None)
    why, says = (" ".join(entry[field].split()) for field in ("why", "says"))
    try:
        names = _names(says)
    except ValueError as error:
        names, faults = [], [*faults, f"its `says` is not a format string ({error})"]
    strange = [name for name in names if name not in evidence]
    faults += [f"its `says` names {name!r}, which is not among its evidence" for name in strange]
    return (None if faults else Rule(kind, evidence, conditions, why, says, adequate)), faults


def listed(names: Iterable[str]) -> str:
    """The names as a sentence lists them."""
    return ", ".join(names)


def _flat(wanted: Any) -> list[str]:
    """The conditions of an entry's `adequate`; lists within it come from YAML's anchors."""
    if isinstance(wanted, list):
        return [text for item in wanted for text in _flat(item)]
    return [str(wanted)]


def _condition(text: str, evidence: Mapping[str, str], faults: list[str]) -> Condition | None:
    try:
        condition = parse(text)
    except ValueError as error:
        faults.append(str(error))
        return None
    if strange := sorted(condition.names - set(evidence)):
        known = f"which is not among its evidence ({listed(evidence)})"
        faults.append(f"the condition {text!r} names {listed(strange)}, {known}")
    return condition


def _scalar(id: str, name: str, value: Any) -> Any:
    """The value as Python's own; also a number of NumPy or a one-element array."""
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    if value is not None and not isinstance(value, bool | int | float | str):
        said = f"must be a number, a truth value or a text, not {type(value).__name__}"
        raise ValueError(f"claim {id}: the evidence {name} {said}")
    if isinstance(value, float) and math.isnan(value):
        said = "is NaN; pass None where something cannot be measured at this size"
        raise ValueError(f"claim {id}: the evidence {name} {said}")
    return value


def _names(says: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(says) if name is not None]


class _Telling(string.Formatter):
    """`str.format` that says "not measured" for None."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return "not measured" if value is None else super().format_field(value, format_spec)
