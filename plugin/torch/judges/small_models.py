"""Small models of transformers, of random weights, for the tests that all models share.

A row is a configuration's class, and what it needs beside the sizes that most have in common.
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
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
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
}


class Tester:
    """What the shared tests ask of a model's own file."""

    batch_size, seq_length, encoder_seq_length, num_choices, is_training = 3, 7, 7, 4, True
    hidden_size, num_hidden_layers, num_attention_heads = 32, 2, 4

    def __init__(self, name: str, parent: Any = None) -> None:
        kind, more = MODELS[name]
        transformers = importlib.import_module("transformers")
        self.make = getattr(transformers, kind)
        self.sizes = SIZES | more

    def get_config(self) -> Any:
        return self.make(**self.sizes)

    def prepare_config_and_inputs_for_common(self) -> tuple[Any, dict[str, Any]]:
        from transformers.testing_utils import torch_device

        common = importlib.import_module("tests.test_modeling_common")
        shape = [self.batch_size, self.seq_length]
        inputs = {"input_ids": common.ids_tensor(shape, 97).clamp(min=2)}
        inputs["attention_mask"] = common.random_attention_mask(shape).to(torch_device)
        return self.get_config(), inputs


def classes(name: str) -> tuple[Any, ...]:
    """All of a model's classes that can be called with what the tester gives."""
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    base = importlib.import_module("transformers").PreTrainedModel
    found = [getattr(module, n) for n in module.__all__]
    models = [c for c in found if isinstance(c, type) and issubclass(c, base)]
    no_test = (  # they need other inputs or labels, or are no models
        "PreTrainedModel",
        "Backbone",
        "ForMaskedImageModeling",
        "DoubleHeadsModel",
        "ForMultipleChoice",
        "ForNextSentencePrediction",
        "ForPreTraining",
    )
    return tuple(c for c in models if not c.__name__.endswith(no_test))


def tests(name: str) -> dict[str, Any]:
    """The test's class by its name, for a module of pytest."""
    common = importlib.import_module("tests.test_modeling_common")
    kind = MODELS[name][0].removesuffix("Config") + "ModelTest"

    def setUp(self: Any) -> None:
        self.model_tester = Tester(name, self)

    body = {
        "all_model_classes": classes(name),
        "setUp": setUp,
        "has_attentions": True,
    }
    return {kind: type(kind, (common.ModelTesterMixin, unittest.TestCase), body)}
