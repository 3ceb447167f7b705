"""Claims as data: the register (`claims/*.yaml`), the rules that turn evidence into verdicts,
pointers to the sources' own sentences.
"""

from compendium.claims.condition import Condition, parse
from compendium.claims.passing import Call, calls, check
from compendium.claims.pointer import Pointer, find, papers_dir, sentence
from compendium.claims.register import Claim, Register, faults_of_pointers, load, read
from compendium.claims.rule import NOT_TESTABLE, VERDICTS, Judgement, Rule, read_rule

__all__ = [
    "NOT_TESTABLE",
    "VERDICTS",
    "Call",
    "Claim",
    "Condition",
    "Judgement",
    "Pointer",
    "Register",
    "Rule",
    "calls",
    "check",
    "faults_of_pointers",
    "find",
    "load",
    "papers_dir",
    "parse",
    "read",
    "read_rule",
    "sentence",
]
