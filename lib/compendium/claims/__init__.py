"""Claims as data: the register (`data/claims/*.yaml`), the rules that turn evidence into verdicts,
pointers to the sources' own sentences.
"""

from compendium.claims.condition import parse as parse
from compendium.claims.pointer import Pointer as Pointer
from compendium.claims.pointer import find as find
from compendium.claims.pointer import papers_dir as papers_dir
from compendium.claims.pointer import sentence as sentence
from compendium.claims.register import Claim as Claim
from compendium.claims.register import Register as Register
from compendium.claims.register import check as check
from compendium.claims.register import faults_of_pointers as faults_of_pointers
from compendium.claims.register import load as load
from compendium.claims.register import read as read
from compendium.claims.rule import CONFIRMED as CONFIRMED
from compendium.claims.rule import NOT_CONFIRMED as NOT_CONFIRMED
from compendium.claims.rule import OPEN as OPEN
from compendium.claims.rule import VERDICTS as VERDICTS
from compendium.claims.rule import Judgement as Judgement
from compendium.claims.rule import read_rule as read_rule
