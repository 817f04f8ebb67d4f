"""Small models of transformers, of random weights, for the tests that all models share.

A row is a configuration's class, what it needs beside the sizes that most have in common, and which
inputs the model takes if not text alone.
"""

from __future__ import annotations

import importlib
import unittest
from typing import Any

SIZES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
}
LLAMA = {"num_key_value_heads": 2, "head_dim": 8}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
# A row of an expert's weights has to be a multiple of 16 bytes.
EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
EXPERTS |= {"intermediate_size": 32}
# An encoder and a decoder, both of two layers.
PAIR = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "decoder_start_token_id": 2}
PAIR |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
PAIR |= {"encoder_ffn_dim": 37, "decoder_ffn_dim": 37}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4}
IMAGES = {"image_size": 30, "patch_size": 5, "num_channels": 3}
WHISPER = {"num_mel_bins": 16, "max_source_positions": 30, "max_target_positions": 40}
WAVES = {"conv_dim": (32, 32), "conv_stride": (8, 8), "conv_kernel": (8, 8)}
WAVES |= {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16}
WAVES |= {"num_conv_pos_embedding_groups": 2, "do_stable_layer_norm": False}
MODELS: dict[str, tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], str]] = {
    "bert": ("BertConfig", {}),
    "roberta": ("RobertaConfig", {}),
    "electra": ("ElectraConfig", {"embedding_size": 32}),
    "albert": ("AlbertConfig", {"embedding_size": 16}),
    "gpt2": ("GPT2Config", GPT2),
    "gpt_neox": ("GPTNeoXConfig", {}),
    "opt": ("OPTConfig", {"ffn_dim": 37, "word_embed_proj_dim": 32}),
    "bloom": ("BloomConfig", {"n_layer": 2, "n_head": 4}),
    "llama": ("LlamaConfig", LLAMA),
    "mistral": ("MistralConfig", LLAMA),
    "mixtral": ("MixtralConfig", LLAMA | EXPERTS),
    "qwen2": ("Qwen2Config", LLAMA),
    "qwen3": ("Qwen3Config", LLAMA),
    "qwen3_moe": ("Qwen3MoeConfig", LLAMA | EXPERTS | {"moe_intermediate_size": 16}),
    "gemma": ("GemmaConfig", LLAMA),
    "gemma2": ("Gemma2Config", LLAMA | {"query_pre_attn_scalar": 8}),
    "phi": ("PhiConfig", {"num_key_value_heads": 4}),
    "phi3": ("Phi3Config", {"num_key_value_heads": 4}),
    "olmo": ("OlmoConfig", LLAMA),
    "stablelm": ("StableLmConfig", {"num_key_value_heads": 4}),
    "cohere": ("CohereConfig", LLAMA),
    "distilbert": ("DistilBertConfig", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37}),
    "bart": ("BartConfig", PAIR, "pair"),
    "t5": ("T5Config", T5 | {"decoder_start_token_id": 0}, "pair"),
    "whisper": ("WhisperConfig", PAIR | WHISPER, "spectrum"),
    "wav2vec2": ("Wav2Vec2Config", WAVES, "waves"),
    "vit": ("ViTConfig", IMAGES, "image"),
    "deit": ("DeiTConfig", IMAGES, "image"),
    "clip": ("CLIPConfig", {}, "text and image"),
    "clip_text": ("CLIPTextConfig", {"projection_dim": 32}),
    "clip_vision": ("CLIPVisionConfig", IMAGES | {"projection_dim": 32}, "image"),
}
FILES = {"clip_text": "clip", "clip_vision": "clip"}  # of transformers, where the names differ
EMBEDDINGS = "test_model_get_set_embeddings"
# Tests that the model's own file leaves out or has otherwise, by the beginnings of their names.
LEFT_OUT = {
    "vit": (EMBEDDINGS,),  # of images: no nn.Embedding
    "deit": (EMBEDDINGS,),
    "clip_vision": (EMBEDDINGS,),
    # Its two models have the embeddings and hidden states, and rows here.
    "clip": (
        EMBEDDINGS,
        "test_attention_outputs",
        "test_eager_matches_sdpa_inference",
        "test_flex_attention",
        "test_hidden_states_output",
        "test_retain_grad_hidden_states_attentions",
    ),
}
PARTS_OF_CLIP = {
    "text_config": SIZES | {"projection_dim": 32},
    "vision_config": SIZES | IMAGES | {"projection_dim": 32},
    "projection_dim": 32,
}


class Tester:
    """What the shared tests ask of a model's own file."""

    batch_size, seq_length, encoder_seq_length, num_choices, is_training = 3, 7, 7, 4, True
    hidden_size, num_hidden_layers, num_attention_heads = 32, 2, 4
    num_masks = 4

    def __init__(self, name: str, parent: Any = None) -> None:
        kind, more, *takes = MODELS[name]
        transformers = importlib.import_module("transformers")
        self.make = getattr(transformers, kind)
        self.sizes = PARTS_OF_CLIP if name == "clip" else SIZES | more
        self.takes = takes[0] if takes else "text"
        self.is_encoder_decoder = self.takes in ("pair", "spectrum")
        if self.takes == "image":  # patches, and tokens of no patch
            self.seq_length = self.encoder_seq_length = 38 if name == "deit" else 37
            self.mask_length = 36  # of the patches alone
        if self.takes == "waves":
            self.seq_length, self.encoder_seq_length = 1024, 15
        if self.takes == "spectrum":
            self.encoder_seq_length, self.decoder_seq_length = 30, 7

    def get_config(self) -> Any:
        return self.make(**self.sizes)

    def prepare_config_and_inputs_for_common(self) -> tuple[Any, dict[str, Any]]:
        common = importlib.import_module("tests.test_modeling_common")
        inputs: dict[str, Any] = {}
        if self.takes in ("text", "pair", "text and image"):
            inputs |= self.text(common)
        if self.takes in ("pair", "spectrum"):
            inputs |= {f"decoder_{name}": value for name, value in self.text(common).items()}
        if self.takes == "spectrum":
            inputs["input_features"] = common.floats_tensor([self.batch_size, 16, 60])
        if self.takes == "waves":
            inputs["input_values"] = common.floats_tensor([self.batch_size, 1024])
        if self.takes in ("image", "text and image"):
            inputs["pixel_values"] = common.floats_tensor([self.batch_size, 3, 30, 30])
        return self.get_config(), inputs

    def text(self, common: Any) -> dict[str, Any]:
        from transformers.testing_utils import torch_device

        shape = [self.batch_size, 7]
        ids = common.ids_tensor(shape, 97).clamp(min=2)
        if self.takes == "pair":  # what classifies a sequence wants one end in each
            ids[:, -1] = SIZES["eos_token_id"]
        mask = common.random_attention_mask(shape).to(torch_device)
        return {"input_ids": ids, "attention_mask": mask}


def classes(name: str) -> tuple[Any, ...]:
    """All of a model's classes that can be called with what the tester gives."""
    file = FILES.get(name, name)
    module = importlib.import_module(f"transformers.models.{file}.modeling_{file}")
    transformers = importlib.import_module("transformers")
    base, config = transformers.PreTrainedModel, getattr(transformers, MODELS[name][0])
    found = [getattr(module, n) for n in module.__all__]
    models = [c for c in found if isinstance(c, type) and issubclass(c, base)]
    models = [c for c in models if c.config_class in (config, None)]
    no_test = (  # they need other inputs or labels, or are no models
        "PreTrainedModel",
        "Backbone",
        "ForMaskedImageModeling",
        "DoubleHeadsModel",
        "ForMultipleChoice",
        "ForNextSentencePrediction",
        "ForPreTraining",
        "ForImageClassificationWithTeacher",
        "ForAudioFrameClassification",
        "ForXVector",
        "ForCTC",
        "T5EncoderModel",
        "WhisperForCausalLM",
        "WhisperForAudioClassification",
        "BartForCausalLM",
        "CLIPForImageClassification",
        "BartPretrainedModel",
        "PretrainedBartModel",
    )
    return tuple(c for c in models if not c.__name__.endswith(no_test))


def tests(name: str) -> dict[str, Any]:
    """The test's class by its name, for a module of pytest."""
    common = importlib.import_module("tests.test_modeling_common")
    kind = MODELS[name][0].removesuffix("Config") + "ModelTest"

    def setUp(self: Any) -> None:
        self.model_tester = Tester(name, self)

    takes = MODELS[name][2:]
    left_out = LEFT_OUT.get(name, ())
    body = {n: None for n in dir(common.ModelTesterMixin) if left_out and n.startswith(left_out)}
    body |= {
        "all_model_classes": classes(name),
        "setUp": setUp,
        "has_attentions": True,
        "is_encoder_decoder": takes in (("pair",), ("spectrum",)),
        "test_resize_embeddings": takes in ((), ("pair",)),
    }
    return {kind: type(kind, (common.ModelTesterMixin, unittest.TestCase), body)}
