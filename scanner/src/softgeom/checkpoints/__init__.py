"""Weights of other people's models, read without running anything of theirs."""

from papers.language_model.gguf_llama import load_gguf_llama as load_gguf_llama
from softgeom.checkpoints.llama2c import Llama2cConfig as Llama2cConfig
from softgeom.checkpoints.llama2c import load_llama2c as load_llama2c
from softgeom.checkpoints.llama2c import read_llama2c as read_llama2c
from softgeom.checkpoints.llama2c import read_llama2c_tokenizer as read_llama2c_tokenizer
from softgeom.checkpoints.loading import Head as Head
from softgeom.checkpoints.loading import load_head as load_head
from softgeom.checkpoints.loading import load_softmax_layer as load_softmax_layer
from compendium.models.ppocr import ppocr_head as ppocr_head
from compendium.models.ppocr import ppocr_source as ppocr_source
from softgeom.checkpoints.released import RELEASED as RELEASED
from softgeom.checkpoints.token_strings import classes_in_script as classes_in_script
