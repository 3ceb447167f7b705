"""Architectures of the census, fixed by name, give the rows that its table has; `census.py` asks
all of them.
"""

import csv
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("transformers")
_SPEC = importlib.util.spec_from_file_location("census", Path(__file__).with_name("census.py"))
census = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(census)

NAMES = """
AlbertForMaskedLM ASTForAudioClassification BartForConditionalGeneration BertForMaskedLM
BertForSequenceClassification BloomForCausalLM CohereForCausalLM ElectraForSequenceClassification
FSMTForConditionalGeneration Gemma2ForCausalLM GPT2LMHeadModel GPTNeoXForCausalLM
GraniteForCausalLM HubertForCTC LlamaForCausalLM LlamaForSequenceClassification MambaForCausalLM
MarianMTModel MobileBertForMaskedLM ModernBertForMaskedLM NemotronForCausalLM OPTForCausalLM
ResNetForImageClassification RobertaForMaskedLM T5ForConditionalGeneration XLNetLMHeadModel
""".split()
TABLE = {row["class"]: row for row in csv.DictReader(census.TABLE.read_text().splitlines())}
KNOWN = {name: (kind, family) for kind, family, name in census.families()}


@pytest.mark.parametrize("name", NAMES)
def test_the_head_of_the_folder_is_the_head_of_the_model(name):
    told = census.row(*KNOWN[name], name)
    assert told["status"] == "right", told
    assert told == {column: said for column, said in TABLE[name].items() if said or column in told}
