"""Chats with a language model in a folder on the disk; its words appear as it finds them.

usage: chat.py [MODEL] [--bits 16|8|4] [--device ocl] [--dtype float32] [--adapter FOLDER]
               [--ask TEXT]... [--system TEXT] [--tokens 256] [--temperature 0]

MODEL is a folder, as transformers' save_pretrained writes it or a download of a model's repository,
or a .gguf file, whose weights stay as they are. small_chat_model.py makes a folder in seconds.
Without MODEL one of random weights is made, whose words mean nothing: for its speed. --bits keeps a
folder's weights in fewer bits. Without --ask it reads lines until an empty one. --adapter adds LoRA
weights, such as those of fine_tune_lora.py.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is loaded over the network

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from packed_layers import pack
from small_chat_model import make_tokenizer
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    TextStreamer,
)


class Words(TextStreamer):
    """Prints words as soon as they are known, and counts tokens and seconds. ``least`` is how long
    a token's weights take to be read."""

    def __init__(self, tokenizer: Any, least: float) -> None:
        self.least = least
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self.start, self.first, self.tokens = time.perf_counter(), 0.0, -1  # the prompt comes first

    def put(self, value: torch.Tensor) -> None:
        self.tokens += 1
        if self.tokens == 1:
            self.first = time.perf_counter() - self.start
        super().put(value)

    def told(self) -> str:
        rest = time.perf_counter() - self.start - self.first
        told = f"[{self.tokens} tokens, the first after {self.first:.2f} s"
        if self.tokens > 1:
            rate = (self.tokens - 1) / rest
            told += f", then {rate:.1f} a second: {rate * self.least:.0%} of a copy's bandwidth"
        return told + "]"


def copy_bandwidth(device: str) -> float:
    """Bytes a second that a copy within the device reads and writes, the best of five."""
    on_ocl = device.startswith("ocl")
    large = on_ocl and torch.ocl.get_device_properties(device).kind != "cpu"
    source = torch.ones(2**28 if large else 2**26, dtype=torch.uint8, device=device)
    there, seconds = torch.empty_like(source), []
    for _ in range(5):
        start = time.perf_counter()
        there.copy_(source)
        if on_ocl:
            torch.ocl.synchronize(device)
        seconds.append(time.perf_counter() - start)
    return 2 * source.nbytes / min(seconds)


def read_for_a_token(model: torch.nn.Module) -> int:
    """Bytes of weights: all but those of a table of which one row is read."""
    table = model.get_input_embeddings()
    output = model.get_output_embeddings()
    shared = output is not None and getattr(output, "weight", None) is table.weight
    weights = {id(t): t for t in [*model.parameters(), *model.buffers()]}
    return sum(t.nbytes for t in weights.values() if shared or t is not table.weight)


def random_model(tokenizer: Any) -> torch.nn.Module:
    """A Llama of 40 million weights that has learnt nothing."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=768,
        num_hidden_layers=6,
        num_attention_heads=12,
        num_key_value_heads=4,
        intermediate_size=2048,
        max_position_embeddings=1024,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=None,  # it would end anywhere
    )
    return LlamaForCausalLM(config)


def load(where: str, device: str, dtype: torch.dtype, bits: int) -> tuple[Any, Any]:
    """Tokenizer and model of a folder, a file, or of nothing."""
    if not where:
        tokenizer = make_tokenizer()
        model = random_model(tokenizer).to(dtype)
        weights = sum(p.numel() for p in model.parameters()) / 1e6
        print(f"No model is given: this one has {weights:.0f} million random weights, and no sense")
    else:
        path, options = pathlib.Path(where), {"local_files_only": True}
        if path.suffix == ".gguf":
            path, options = path.parent, options | {"gguf_file": path.name}
        tokenizer = AutoTokenizer.from_pretrained(str(path), **options)
        # device_map loads the weights onto the device file by file: no copy of all in the host.
        # What is packed goes there layer by layer.
        there = device if bits == 16 else "cpu"
        model = AutoModelForCausalLM.from_pretrained(
            str(path), dtype=dtype, device_map=there, **options
        )
    return tokenizer, model


class Chat:
    """A conversation: what was said goes into every question."""

    def __init__(
        self,
        where: str,
        device: str,
        dtype: torch.dtype = torch.float32,
        bits: int = 16,
        adapter: str = "",
    ) -> None:
        bandwidth = copy_bandwidth(device)
        if device.startswith("ocl"):
            torch.ocl.empty_cache()
            torch.ocl.reset_peak_memory_stats(device)
        self.tokenizer, self.model = load(where, device, dtype, bits)
        if adapter:
            from peft import PeftModel

            self.model = PeftModel.from_pretrained(self.model, adapter).merge_and_unload()
        if bits == 16:
            self.model.to(device)
        else:
            pack(self.model, bits, device)
        self.model.eval()
        self.bytes = read_for_a_token(self.model)
        self.least = self.bytes / bandwidth
        self.messages: list[dict[str, str]] = []

    def say(self, text: str, tokens: int = 256, temperature: float = 0.0) -> str:
        """Prints the answer while it comes, and returns it."""
        self.messages.append({"role": "user", "content": text})
        if self.tokenizer.chat_template:
            prompt = self.tokenizer.apply_chat_template(
                self.messages, tokenize=False, add_generation_prompt=True
            )
            asked = self.tokenizer(prompt, add_special_tokens=False, return_tensors="pt")
        else:  # a model that only goes on with a text
            asked = self.tokenizer(text, return_tensors="pt")
        asked = asked.to(self.model.device)
        choice = {"do_sample": True, "temperature": temperature} if temperature else {}
        words = Words(self.tokenizer, self.least)
        found = self.model.generate(
            input_ids=asked.input_ids,
            attention_mask=asked.attention_mask,
            max_new_tokens=tokens,
            streamer=words,
            **({"do_sample": False} | choice),
        )
        print(words.told())
        answer = self.tokenizer.decode(
            found[0, asked.input_ids.shape[1] :], skip_special_tokens=True
        )
        self.messages.append({"role": "assistant", "content": answer})
        return answer


def lines() -> Iterator[str]:
    """What the user types, until an empty line or the end."""
    while True:
        try:
            text = input("> ").strip()
        except EOFError:
            return
        if not text:
            return
        yield text


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("model", nargs="?", default="")
    p.add_argument("--bits", type=int, choices=(16, 8, 4))
    p.add_argument("--device", default="ocl")
    p.add_argument("--dtype", choices=("float32", "float16", "bfloat16"))
    p.add_argument("--adapter", default="")
    p.add_argument("--ask", action="append", default=[])
    p.add_argument("--system", default="")
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument("--temperature", type=float, default=0.0)
    options = p.parse_args()
    on_ocl = options.device.startswith("ocl")
    if options.bits and options.model.endswith(".gguf"):
        p.error("a .gguf file has its own bits: leave --bits out")
    if options.bits in (8, 4) and not on_ocl:
        p.error(f"--bits {options.bits} is for ocl, whose kernels read such weights")
    if options.bits == 16 and options.dtype == "float32":
        p.error("float32 has 32 bits: leave --bits or --dtype out")
    dtype = options.dtype or ("bfloat16" if options.bits == 16 else "float32")
    chat = Chat(
        options.model, options.device, getattr(torch, dtype), options.bits or 16, options.adapter
    )
    if options.system:
        chat.messages.append({"role": "system", "content": options.system})
    for text in options.ask or lines():
        if options.ask:
            print(f"> {text}")
        chat.say(text, options.tokens, options.temperature)
    print(f"a token reads {chat.bytes / 2**20:.1f} MiB of weights", end="")
    print(f", memory peak {torch.ocl.max_memory_allocated() / 2**20:.1f} MiB" if on_ocl else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
