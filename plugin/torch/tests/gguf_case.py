"""GGUF files of random blocks for the tests of libraries that load them, and float64's values of
these blocks."""

from __future__ import annotations

import json
import math
import pathlib
from typing import Any

import numpy as np
import torch
from library_case import quiet  # noqa: F401  finds gguf and tests/oracle
from quantised_weights import BLOCKS, Block, values

# The 16-bit numbers of a block, so that random bytes are values of about 1, half of them negative.
FACTORS = {
    "Q4_0": (1 / 4.6,),
    "Q4_1": (1 / 4.6, -7.5 / 4.6),
    "Q5_0": (1 / 9.2,),
    "Q5_1": (1 / 9.2, -15.5 / 9.2),
    "Q8_0": (1 / 74,),
    "Q2_K": (1 / 10, 1.5 / 10),
    "Q3_K": (1 / 42,),
    "Q4_K": (1 / 150, 7.5 / 150),
    "Q5_K": (1 / 300, 15.5 / 300),
    "Q6_K": (1 / 1370,),
    "IQ4_NL": (1 / 70,),
    "IQ4_XS": (1 / 1300,),
}
WITH_KERNELS = tuple(FACTORS)
# Types that no kernel reads: one of transformers' newer loader, one of its older one.
OTHERS = {
    "IQ3_S": (Block(None, 256, 110, (0,)), (1 / 140,)),
    "TQ1_0": (Block(None, 256, 54, (52,)), (1 / 0.8,)),
}


def block_of(kind: str) -> tuple[Block, tuple[float, ...]]:
    return OTHERS[kind] if kind in OTHERS else (BLOCKS[kind.lower()], FACTORS[kind])


def blocks(kind: str, n: int, k: int, draw: np.random.Generator, size: float) -> np.ndarray:
    """[n, bytes of a row] of random bytes, whose values are about ``size``."""
    block, factors = block_of(kind)
    data = draw.integers(0, 256, (n, k // block.elements, block.bytes), dtype=np.uint8)
    for at, factor in zip(block.halves, factors, strict=True):
        scale = draw.uniform(0.7, 1.3, (*data.shape[:2], 1)) * factor * size
        data[..., at : at + 2] = scale.astype(np.float16).view(np.uint8)
    return data.reshape(n, -1)


def float64(kind: str, data: np.ndarray) -> torch.Tensor:
    """Of the rows of ``data``: by the oracle, or gguf's float32 where it has no such type."""
    block, _ = block_of(kind)
    n, k = len(data), data.shape[1] // block.bytes * block.elements
    if kind in OTHERS:
        import gguf

        found = gguf.dequantize(data, gguf.GGMLQuantizationType[kind])
    else:
        found = values(kind.lower(), data, n, k)
    return torch.from_numpy(np.ascontiguousarray(found)).double().view(n, k)


class File:
    """A file that is being written, and the bytes of its weights."""

    def __init__(self, path: pathlib.Path, architecture: str, seed: int = 1) -> None:
        import gguf

        self.draw = np.random.default_rng(seed)
        self.writer = gguf.GGUFWriter(path, architecture)
        self.types = gguf.GGMLQuantizationType
        self.weights: dict[str, tuple[str, np.ndarray]] = {}

    def weight(self, name: str, kind: str, shape: tuple[int, ...], size: float) -> None:
        *rows, k = shape
        data = blocks(kind, math.prod(rows), k, self.draw, size).reshape(*rows, -1)
        self.weights[name] = (kind, data)
        self.writer.add_tensor(name, data, raw_dtype=self.types[kind])

    def floats(self, name: str, shape: tuple[int, ...], middle: float, size: float) -> None:
        values = middle + size * self.draw.standard_normal(shape)
        self.writer.add_tensor(name, values.astype(np.float32))

    def close(self) -> None:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


HIDDEN, WIDE, VOCABULARY, LAYERS, HEADS, KEY_HEADS = 256, 512, 320, 2, 2, 1
HEAD = HIDDEN // HEADS
EXPERTS = 4
# What transformers assumes, as files of the older loader's families do not say it to it.
OF_EXPERTS = {"qwen2moe": (1408, 5632), "qwen3moe": (768, 0)}


def _layer(architecture: str) -> list[tuple[str, tuple[int, ...]]]:
    """The weights of a layer by name and shape."""
    queries, keys = (HIDDEN, HIDDEN), (KEY_HEADS * HEAD, HIDDEN)
    attention = [("attn_q", queries), ("attn_k", keys), ("attn_v", keys)]
    if architecture == "phi3":
        attention = [("attn_qkv", (HIDDEN + 2 * KEY_HEADS * HEAD, HIDDEN))]
    attention.append(("attn_output", queries))
    up, down = (WIDE, HIDDEN), (HIDDEN, WIDE)
    if architecture == "phi3":
        return [*attention, ("ffn_up", (2 * WIDE, HIDDEN)), ("ffn_down", down)]
    if architecture in ("starcoder2", "nemotron"):
        return [*attention, ("ffn_up", up), ("ffn_down", down)]
    if architecture not in OF_EXPERTS:
        return [*attention, ("ffn_gate", up), ("ffn_up", up), ("ffn_down", down)]
    wide, shared = OF_EXPERTS[architecture]
    routed = [("gate", (wide, HIDDEN)), ("up", (wide, HIDDEN)), ("down", (HIDDEN, wide))]
    found = attention + [(f"ffn_{name}_exps", (EXPERTS, *shape)) for name, shape in routed]
    if shared:
        of_all = [("gate", (shared, HIDDEN)), ("up", (shared, HIDDEN)), ("down", (HIDDEN, shared))]
        found += [(f"ffn_{name}_shexp", shape) for name, shape in of_all]
    return found


def _norms(architecture: str) -> dict[str, int]:
    """The norms of a layer by name, with their sizes."""
    found = {"attn_norm": HIDDEN, "ffn_norm": HIDDEN}
    if architecture.startswith("gemma"):
        found |= {"post_attention_norm": HIDDEN, "post_ffw_norm": HIDDEN}
    if architecture in ("qwen3", "qwen3moe", "gemma3"):
        found |= {"attn_q_norm": HEAD, "attn_k_norm": HEAD}
    return found


def _sizes(w: Any, architecture: str) -> None:
    w.add_context_length(128)
    w.add_embedding_length(HIDDEN)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(WIDE)
    w.add_head_count(HEADS)
    if architecture != "lfm2":
        w.add_head_count_kv(KEY_HEADS)
    w.add_key_length(HEAD)
    w.add_value_length(HEAD)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_layer_norm_eps(1e-6)
    w.add_rope_freq_base(10000.0)
    w.add_rope_dimension_count(32 if architecture == "qwen35" else HEAD)
    w.add_sliding_window(64)
    w.add_vocab_size(VOCABULARY)
    w.add_token_list([str(i) for i in range(VOCABULARY)])
    w.add_pad_token_id(0)
    if architecture in OF_EXPERTS:
        w.add_expert_count(EXPERTS)
        w.add_expert_used_count(2)


def language_model(
    path: pathlib.Path, architecture: str, kinds: str = "Q4_K Q6_K", tied: bool = False
) -> File:
    """A small model of a family: ``kinds`` of its layers in turn, tables as Q8_0."""
    # To llama.cpp mistral is a llama.
    name, architecture = architecture, "llama" if architecture == "mistral" else architecture
    file, kind = File(path, architecture), kinds.split()
    file.writer.add_name(name)
    _sizes(file.writer, architecture)
    gemma = architecture.startswith("gemma")
    with_bias = architecture in ("starcoder2", "nemotron")
    norms_have_bias = with_bias or architecture == "stablelm"
    file.weight("token_embd.weight", "Q8_0", (VOCABULARY, HIDDEN), 0.05 if gemma else 0.5)
    if not tied:
        file.weight("output.weight", kind[-1], (VOCABULARY, HIDDEN), 0.2)
    if architecture == "llama":
        file.floats("rope_freqs.weight", (HEAD // 2,), 1, 0)
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        for i, (leaf, shape) in enumerate(_layer(architecture)):
            # Rows of a K-quant are of whole blocks, and what is one tensor later has one type.
            whole = shape[-1] % 256 == 0
            of = kind[0] if "exps" in leaf and whole else kind[i % len(kind)] if whole else "Q8_0"
            file.weight(f"{at}.{leaf}.weight", of, shape, 1.5 / shape[-1] ** 0.5)
            asked = architecture in ("qwen2", "qwen2moe") and leaf in ("attn_q", "attn_k", "attn_v")
            if asked or with_bias:
                file.floats(f"{at}.{leaf}.bias", (shape[0],), 0, 0.1)
        for leaf, size in _norms(architecture).items():
            file.floats(f"{at}.{leaf}.weight", (size,), 1, 0.1)
            if norms_have_bias:
                file.floats(f"{at}.{leaf}.bias", (size,), 0, 0.1)
        if architecture in OF_EXPERTS:
            file.floats(f"{at}.ffn_gate_inp.weight", (EXPERTS, HIDDEN), 0, 1 / HIDDEN**0.5)
            if OF_EXPERTS[architecture][1]:
                file.floats(f"{at}.ffn_gate_inp_shexp.weight", (HIDDEN,), 0, 1 / HIDDEN**0.5)
    file.floats("output_norm.weight", (HIDDEN,), 1, 0.1)
    if norms_have_bias:
        file.floats("output_norm.bias", (HIDDEN,), 0, 0.1)
    file.close()
    return file


def hybrid_model(path: pathlib.Path, architecture: str, kinds: str = "Q4_K Q6_K") -> File:
    """lfm2 or qwen35: a layer that mixes neighbours in its own way, then one with attention."""
    file, kind = File(path, architecture), kinds.split()
    w = file.writer
    w.add_name("small")
    _sizes(w, architecture)
    file.weight("token_embd.weight", "Q8_0", (VOCABULARY, HIDDEN), 0.5)
    mlp = {"ffn_gate": (WIDE, HIDDEN), "ffn_up": (WIDE, HIDDEN), "ffn_down": (HIDDEN, WIDE)}
    keys = {"attn_k": (KEY_HEADS * HEAD, HIDDEN), "attn_v": (KEY_HEADS * HEAD, HIDDEN)}
    if architecture == "lfm2":
        w.add_head_count_kv([0, KEY_HEADS])
        w.add_shortconv_l_cache(3)
        file.floats("token_embd_norm.weight", (HIDDEN,), 1, 0.1)
        norms, queries, floats = ("attn_norm", "ffn_norm"), HIDDEN, {"shortconv.conv": (HIDDEN, 3)}
        first = {"shortconv.in_proj": (3 * HIDDEN, HIDDEN), "shortconv.out_proj": (HIDDEN, HIDDEN)}
    else:
        w.add_full_attention_interval(2)
        w.add_ssm_conv_kernel(4)
        w.add_ssm_state_size(64)
        w.add_ssm_group_count(2)
        w.add_ssm_time_step_rank(4)
        w.add_ssm_inner_size(256)
        w.add_rope_dimension_sections([6, 5, 5, 0])
        file.weight("output.weight", kind[-1], (VOCABULARY, HIDDEN), 0.2)
        file.floats("output_norm.weight", (HIDDEN,), 1, 0.1)
        file.floats("blk.0.ssm_a", (4,), -1, 0.1)
        file.floats("blk.0.ssm_dt.bias", (4,), 0, 0.1)
        file.floats("blk.0.ssm_norm.weight", (64,), 1, 0.1)
        norms, queries = ("attn_norm", "post_attention_norm"), 2 * HIDDEN  # with gates
        floats = {"ssm_conv1d": (512, 4)}
        first = {"attn_qkv": (512, HIDDEN), "attn_gate": (256, HIDDEN), "ssm_alpha": (4, HIDDEN)}
        first |= {"ssm_beta": (4, HIDDEN), "ssm_out": (HIDDEN, 256)}
    second = {"attn_q": (queries, HIDDEN), **keys, "attn_output": (HIDDEN, HIDDEN)}
    for leaf, shape in floats.items():
        file.floats(f"blk.0.{leaf}.weight", shape, 0, 0.5)
    for leaf in ("attn_q_norm", "attn_k_norm"):
        file.floats(f"blk.1.{leaf}.weight", (HEAD,), 1, 0.1)
    for layer, own in enumerate((first, second)):
        for i, (leaf, shape) in enumerate((own | mlp).items()):
            size = 1.5 / shape[-1] ** 0.5
            file.weight(f"blk.{layer}.{leaf}.weight", kind[i % len(kind)], shape, size)
        for leaf in norms:
            file.floats(f"blk.{layer}.{leaf}.weight", (HIDDEN,), 1, 0.1)
    file.close()
    return file


def load(path: pathlib.Path, device: Any, **options: Any) -> torch.nn.Module:
    from transformers import AutoModelForCausalLM

    with quiet():
        return AutoModelForCausalLM.from_pretrained(
            str(path.parent), gguf_file=path.name, device_map=device, **options
        )


def convert(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Writes a Llama that transformers has saved, in Q8_0, with its tokenizer of bytes' pairs."""
    import gguf
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer, c = AutoTokenizer.from_pretrained(folder), model.config
    w, head = gguf.GGUFWriter(path, "llama"), c.hidden_size // c.num_attention_heads
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_block_count(c.num_hidden_layers)
    w.add_feed_forward_length(c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    w.add_head_count_kv(c.num_key_value_heads)
    w.add_layer_norm_rms_eps(c.rms_norm_eps)
    w.add_rope_freq_base(10000.0)
    w.add_rope_dimension_count(head)
    w.add_vocab_size(c.vocab_size)
    state = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(state["vocab"], key=state["vocab"].get)
    special = set(tokenizer.all_special_tokens) | {"<user>", "<assistant>"}
    w.add_tokenizer_model("gpt2")
    w.add_token_list(tokens)
    w.add_token_types([3 if t in special else 1 for t in tokens])
    w.add_token_merges([" ".join(m) for m in state["merges"]])
    w.add_eos_token_id(tokenizer.eos_token_id)
    w.add_pad_token_id(tokenizer.pad_token_id)
    w.add_chat_template(tokenizer.chat_template)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, c.num_hidden_layers)
    for name, p in model.state_dict().items():
        stem, suffix = name.rsplit(".", 1)
        data = p.float()
        if "q_proj" in name or "k_proj" in name:  # rows in pairs
            data = data.view(-1, 2, head // 2, data.shape[1]).transpose(1, 2).reshape(data.shape)
        data, kind = data.numpy(), gguf.GGMLQuantizationType.F32
        if data.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            data = gguf.quantize(data, kind)
        w.add_tensor(f"{names.get_name(stem)}.{suffix}", data, raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
