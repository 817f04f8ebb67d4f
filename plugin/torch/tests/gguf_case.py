"""GGUF files of random blocks for the tests of libraries that load them, and float64's values of
these blocks."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import torch
from library_case import quiet  # noqa: F401  finds gguf and tests/oracle
from quantised_weights import values

# Of a block: elements, bytes, where its half floats are, and the factor of a first that makes
# values of about 1; the second, of types with a least value, is that many times the first.
BLOCKS: dict[str, tuple[int, int, dict[int, float]]] = {
    "Q4_0": (32, 18, {0: 1 / 4.6}),
    "Q8_0": (32, 34, {0: 1 / 74}),
    "Q4_K": (256, 144, {0: 1 / 150, 2: 7.5 / 150}),
    "Q6_K": (256, 210, {208: 1 / 1370}),
    "Q5_K": (256, 176, {0: 1 / 300, 2: 15.5 / 300}),
    "Q5_0": (32, 22, {0: 1 / 9.2}),
}
WITH_KERNELS = ("Q4_0", "Q8_0", "Q4_K", "Q6_K")


def blocks(kind: str, n: int, k: int, draw: np.random.Generator, size: float) -> np.ndarray:
    """[n, bytes of a row] of random bytes, whose values are about ``size``."""
    elements, bytes_, halves = BLOCKS[kind]
    data = draw.integers(0, 256, (n, k // elements, bytes_), dtype=np.uint8)
    for at, factor in halves.items():
        scale = draw.uniform(0.7, 1.3, (n, k // elements, 1)) * factor * size
        data[..., at : at + 2] = scale.astype(np.float16).view(np.uint8)
    return data.reshape(n, -1)


def float64(kind: str, data: np.ndarray) -> torch.Tensor:
    """Of the rows of ``data``: by the oracle, or gguf's float32 where it has no such type."""
    elements, bytes_, _ = BLOCKS[kind]
    n, k = len(data), data.shape[1] // bytes_ * elements
    if kind in WITH_KERNELS:
        found = values(kind.lower(), data, n, k, k, None, None)
    else:
        import gguf

        found = gguf.dequantize(data, gguf.GGMLQuantizationType[kind])
    return torch.from_numpy(np.ascontiguousarray(found)).double().view(n, k)


class File:
    """A file that is being written, and the bytes of its weights."""

    def __init__(self, path: pathlib.Path, architecture: str, seed: int = 1) -> None:
        import gguf

        self.draw = np.random.default_rng(seed)
        self.writer = gguf.GGUFWriter(path, architecture)
        self.types = gguf.GGMLQuantizationType
        self.weights: dict[str, tuple[str, np.ndarray]] = {}

    def weight(self, name: str, kind: str, n: int, k: int, size: float) -> None:
        data = blocks(kind, n, k, self.draw, size)
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


def language_model(
    path: pathlib.Path, architecture: str, kinds: str = "Q4_K Q6_K", tied: bool = False
) -> File:
    """A small model of a family: ``kinds`` of its layers in turn, tables as Q8_0."""
    file, kind = File(path, architecture), kinds.split()
    w, head = file.writer, HIDDEN // HEADS
    w.add_name("small")
    w.add_context_length(128)
    w.add_embedding_length(HIDDEN)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(WIDE)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KEY_HEADS)
    w.add_key_length(head)
    w.add_value_length(head)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(10000.0)
    w.add_rope_dimension_count(head)
    w.add_sliding_window(64)
    w.add_vocab_size(VOCABULARY)
    gemma, qwen = architecture.startswith("gemma"), architecture.startswith("qwen")
    file.weight("token_embd.weight", "Q8_0", VOCABULARY, HIDDEN, 0.05 if gemma else 0.5)
    if not tied:
        file.weight("output.weight", kind[-1], VOCABULARY, HIDDEN, 0.2)
    if architecture == "llama":
        file.floats("rope_freqs.weight", (head // 2,), 1, 0)
    norms = ["attn_norm", "ffn_norm"]
    if gemma:
        norms += ["post_attention_norm", "post_ffw_norm"]
    each_head = ["attn_q_norm", "attn_k_norm"] if architecture in ("qwen3", "gemma3") else []
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        for i, (name, n, k) in enumerate(
            (("attn_q", HIDDEN, HIDDEN), ("attn_k", KEY_HEADS * head, HIDDEN),
             ("attn_v", KEY_HEADS * head, HIDDEN), ("attn_output", HIDDEN, HIDDEN),
             ("ffn_gate", WIDE, HIDDEN), ("ffn_up", WIDE, HIDDEN), ("ffn_down", HIDDEN, WIDE))
        ):  # fmt: skip
            file.weight(f"{at}.{name}.weight", kind[i % len(kind)], n, k, 1.5 / k**0.5)
            if qwen and architecture == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                file.floats(f"{at}.{name}.bias", (n,), 0, 0.1)
        for name in norms:
            file.floats(f"{at}.{name}.weight", (HIDDEN,), 1, 0.1)
        for name in each_head:
            file.floats(f"{at}.{name}.weight", (head,), 1, 0.1)
    file.floats("output_norm.weight", (HIDDEN,), 1, 0.1)
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
