"""Names of heads, as data: which architecture ends with what (`choosing` decides by these rows).

A name is *canonical*: without the prefixes that wrappers add, and without `.weight`. In a pattern
`*` stands for any text. The page that scans in a browser is made from the same rows.
"""

from __future__ import annotations

import re

# components of a name that say who wrapped the model, wherever they stand
WRAPPERS = frozenset(
    {"module", "_orig_mod", "_forward_module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
)
# and those that say so only in front
CONTAINERS = frozenset({"model", "base_model", "net", "network"})

LANGUAGE_HEADS = (
    "lm_head",
    "lm_head.decoder",  # RoBERTa
    "cls.predictions.decoder",  # BERT
    "predictions.decoder",  # ALBERT
    "vocab_projector",  # DistilBERT
    "generator_lm_head",  # ELECTRA
    "embed_out",  # GPT-NeoX
    "lm_loss",  # XLNet
    "pred_layer.proj",  # XLM
    "proj_out",  # Whisper
    "output_projection",  # fairseq
    "output_layer",  # ChatGLM, torchtune
    "output",  # Llama as Meta stores it
    "generator",
    "generator.0",  # OpenNMT
    "language_model.lm_head",
    "decoder.lm_head",
    "decoder.output_projection",
    "decoder.output_layer",
    "decoder.proj_out",
    "head",  # RWKV
    "head.decoder",
    "decoder",  # ModernBERT
)
FRAME_HEADS = (
    "ctc_head",
    "ctc_proj",
    "ctc_lo",
    "ctc.ctc_lo",  # ESPnet
    "ctc",
    "decoder.decoder_layers.0",  # NeMo
    "encoder.out",
    "head.ctc_head.fc",  # PaddleOCR, trained with a second head that only guides
    "Prediction",  # EasyOCR
)
CLASS_HEADS = (
    "classifier",
    "classifier.out_proj",  # RoBERTa
    "classification_head.out_proj",  # BART
    "score",  # GPT-2, Llama
    "logits_proj",  # XLNet
    "head",  # timm
    "head.fc",
    "heads.head",  # torchvision
    "fc",
    "linear",
    "out",
    "logits",
    "logit_layer",  # g2pM
    "output_proj",
)
# W of a tied model, where nothing else is stored; the decoder's own first
EMBEDDINGS = (
    "decoder.embed_tokens",
    "decoder.*.word_embeddings",  # two models in one
    "decoder.*.wte",
    "*.decoder.embed_tokens",
    "embed_tokens",
    "*.embed_tokens",
    "shared",
    "*.shared",
    "wte",
    "*.wte",
    "word_embeddings",
    "*.word_embeddings",
    "tok_embeddings",
    "*.tok_embeddings",
    "*.word_embedding",  # XLNet
    "*.tokens_embed",  # GPT
    "*.embed_in",  # GPT-NeoX
    "*.embeddings",  # Mamba, XLM
    "transformer.w",  # CTRL
    "token_embd",  # GGUF
)
BIASES = (
    "final_logits_bias",  # MarianMT, BART
    "cls.predictions.bias",
    "cls.predictions.decoder.bias",
    "predictions.bias",
    "predictions.decoder.bias",
    "vocab_projector.bias",
    "generator_lm_head.bias",
    "lm_head.bias",
    "lm_head.decoder.bias",
    "lm_loss.bias",
    "pred_layer.proj.bias",
    "embedding_decoder.bias",  # Perceiver
    "proj_out.bias",
    "decoder.bias",  # ModernBERT
    "decoder.cls.predictions.bias",
    "decoder.cls.predictions.decoder.bias",
    "output.bias",
    "b",
    "bias",
)

# endings of a matrix and of the bias beside it
SIBLINGS = (
    ("weight", "bias"), ("weights", "biases"), ("weights", "bias"), ("kernel", "bias"),
    ("_w", "_b"), (".w_0", ".b_0"), (".w", ".b"), ("_W", "_b"), ("W", "b"),
)  # fmt: skip
ENDING = re.compile(r"[._/]?(weights?|kernel|w_0|[wW])$")
RECURRENT = re.compile(r"(^|[._])(weight_[ih]h|w_[ih]h|[ih]2h|rnn|lstm|gru)", re.IGNORECASE)
# what stands beside or in place of a matrix that is not stored as it runs
CODED = re.compile(
    r"\.(qweight|qzeros|scales|g_idx|SCB|W_q|absmax|quant_map|lora_\w+|base_layer|weight_(packed|"
    r"scale|scale_inv|zero_point|shape|orig|mask|[uvg]|quantizer\S*)|original\d?)\b"
)
# a file that is one of several
PART = re.compile(r"-(\d{5})-of-(\d{5})$")

# architectures of llama.cpp that end with features
EMBEDDERS = frozenset({
    "bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2",
    "jina-bert-v3", "eurobert", "t5encoder", "gemma-embedding", "llama-embed", "clip",
    "wavtokenizer-dec",
})  # fmt: skip
# names that exporters to ONNX give to outputs
SCORES = re.compile(r"logit|score|prob|softmax", re.IGNORECASE)
STATES = re.compile(r"present|past|cache|hidden_state|attention|encoder_last", re.IGNORECASE)

# families whose configuration ties nothing where it does not say so
UNTIED = frozenset({
    "gpt_neox", "gptj", "llama", "mistral", "mixtral", "olmo", "olmo2", "phi", "phi3", "qwen2",
    "qwen2_moe", "qwen3", "qwen3_moe", "rwkv", "stablelm",
})  # fmt: skip

# what the name of the class in `architectures` contains: what it ends with; the first that fits
LANGUAGE, FRAMES, CLASSES, NOTHING = "language", "frames", "classes", "nothing"
# some classes of this name end with no words: only a bias of a known name shows that one does
PRETRAINING = "ForPreTraining"
ENDINGS = (
    ("ForCTC", FRAMES),
    ("ForSequenceClassification", CLASSES),
    ("ForTokenClassification", CLASSES),
    ("ForImageClassification", CLASSES),
    ("ForAudioClassification", CLASSES),
    ("ForVideoClassification", CLASSES),
    ("ForCausalLM", LANGUAGE),
    ("ForMaskedLM", LANGUAGE),
    ("ForConditionalGeneration", LANGUAGE),
    (PRETRAINING, LANGUAGE),
    ("LMHeadModel", LANGUAGE),
    ("WithLMHead", LANGUAGE),
    ("MTModel", LANGUAGE),
    ("EncoderDecoderModel", LANGUAGE),
    ("ForQuestionAnswering", NOTHING),
    ("ForMultipleChoice", NOTHING),
    ("Model", NOTHING),
    ("For", NOTHING),  # any other task: spans, boxes, pairs of sentences, masks of an image
)
HEADS = {LANGUAGE: LANGUAGE_HEADS, FRAMES: FRAME_HEADS + LANGUAGE_HEADS, CLASSES: CLASS_HEADS}

# the norm right before a head: of a head that begins with a dense layer and a norm of its own
_OWN_NORMS = (
    "cls.predictions.transform.LayerNorm",  # BERT
    "lm_head.layer_norm",  # RoBERTa
    "vocab_layer_norm",  # DistilBERT
    "predictions.LayerNorm",
    "generator_predictions.LayerNorm",
)
# and the norm that ends the layers below
_LAST_NORMS = (
    "transformer.ln_f",  # GPT-2
    "ln_f",
    "norm",  # Llama
    "language_model.norm",
    "output_norm",  # GGUF
    "decoder.layer_norm",  # pre-norm encoder-decoders
    "decoder.final_layer_norm",  # OPT, T5
    "gpt_neox.final_layer_norm",
    "final_layernorm",
)
# how a model ends: heads that follow a norm, and the norms, the first that is there. All other
# classifiers pool, or have a dense layer, in between
NORMS = {
    LANGUAGE: (LANGUAGE_HEADS + EMBEDDINGS, _OWN_NORMS + _LAST_NORMS),
    CLASSES: (("score",), _LAST_NORMS),
}

# models whose stored matrix is not the layer that runs: model_type, what else must hold of
# config.json, why
_REFORMER = "whether its bias is added depends on the version of Transformers"
REFUSED_FAMILIES: tuple[tuple[str, dict[str, object], str], ...] = (
    ("reformer", {"architectures": ["ReformerForMaskedLM"]}, _REFORMER),
    ("reformer", {"architectures": ["ReformerModelWithLMHead"]}, _REFORMER),
    ("baichuan", {"vocab_size": 125696}, "each row of lm_head is divided by its norm when it runs"),
)
