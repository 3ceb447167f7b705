"""Weights of other people's models, read without running anything of theirs."""

from softgeom.checkpoints.llama2c import Llama2cConfig as Llama2cConfig
from softgeom.checkpoints.llama2c import read_llama2c as read_llama2c
from softgeom.checkpoints.llama2c import read_llama2c_tokenizer as read_llama2c_tokenizer
from softgeom.checkpoints.loading import Head as Head
from softgeom.checkpoints.loading import load_head as load_head
from softgeom.checkpoints.loading import load_softmax_layer as load_softmax_layer
from softgeom.checkpoints.released import RELEASED as RELEASED
