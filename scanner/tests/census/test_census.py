"""Forty architectures of the census, fixed by name; `census.py` asks all of them."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("transformers")
_SPEC = importlib.util.spec_from_file_location("census", Path(__file__).with_name("census.py"))
census = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(census)

NAMES = """
AlbertForMaskedLM ASTForAudioClassification BartForConditionalGeneration BertForMaskedLM
BertForSequenceClassification BertForTokenClassification BloomForCausalLM CohereForCausalLM
DebertaV2ForTokenClassification DistilBertForMaskedLM DistilBertForSequenceClassification
ElectraForSequenceClassification StableLmForCausalLM GemmaForCausalLM Gemma2ForCausalLM
GPT2LMHeadModel GPT2ForSequenceClassification GPTNeoXForCausalLM GraniteForCausalLM HubertForCTC
LlamaForCausalLM LlamaForSequenceClassification MambaForCausalLM MarianMTModel MistralForCausalLM
MobileBertForMaskedLM ModernBertForMaskedLM MT5ForConditionalGeneration OPTForCausalLM
Phi3ForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM ResNetForImageClassification RobertaForMaskedLM
RobertaForSequenceClassification SwinForImageClassification T5ForConditionalGeneration
ViTForImageClassification Wav2Vec2ForCTC XLNetLMHeadModel
""".split()
KNOWN = {name: (kind, family) for kind, family, name in census.families()}


@pytest.mark.parametrize("name", NAMES)
def test_the_head_of_the_folder_is_the_head_of_the_model(name):
    told = census.row(*KNOWN[name], name)
    assert told["status"] == "right", told
