"""Chats with a language model in a folder on the disk; its words appear as it finds them.

usage: chat.py FOLDER [--device ocl] [--dtype float32] [--adapter FOLDER] [--ask TEXT]...
               [--system TEXT] [--tokens 256] [--temperature 0]

FOLDER is what transformers' save_pretrained writes, or a download of a model's repository.
small_chat_model.py makes one in seconds. Without --ask it reads lines until an empty one. --adapter
adds LoRA weights, such as those of fine_tune_lora.py.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is loaded over the network

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from transformers import AutoModelForCausalLM, AutoTokenizer, TextStreamer


class Words(TextStreamer):
    """Prints words as soon as they are known, and counts tokens and seconds."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self.start, self.first, self.tokens = time.perf_counter(), 0.0, -1  # the prompt comes first

    def put(self, value: torch.Tensor) -> None:
        self.tokens += 1
        if self.tokens == 1:
            self.first = time.perf_counter() - self.start
        super().put(value)

    def told(self) -> str:
        rest = time.perf_counter() - self.start - self.first
        rate = f", then {(self.tokens - 1) / rest:.1f} a second" if self.tokens > 1 else ""
        return f"[{self.tokens} tokens, the first after {self.first:.2f} s{rate}]"


class Chat:
    """A conversation: what was said goes into every question."""

    def __init__(self, folder: str, device: str, dtype: str = "float32", adapter: str = "") -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        # device_map loads the weights onto the device file by file: no copy of all in the host.
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=getattr(torch, dtype), device_map=device, local_files_only=True
        )
        if adapter:
            from peft import PeftModel

            self.model = PeftModel.from_pretrained(self.model, adapter).merge_and_unload()
        self.model.eval()
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
        words = Words(self.tokenizer)
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
    p.add_argument("folder")
    p.add_argument("--device", default="ocl")
    p.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    p.add_argument("--adapter", default="")
    p.add_argument("--ask", action="append", default=[])
    p.add_argument("--system", default="")
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument("--temperature", type=float, default=0.0)
    options = p.parse_args()
    chat = Chat(options.folder, options.device, options.dtype, options.adapter)
    if options.system:
        chat.messages.append({"role": "system", "content": options.system})
    for text in options.ask or lines():
        if options.ask:
            print(f"> {text}")
        chat.say(text, options.tokens, options.temperature)
    if options.device.startswith("ocl"):
        print(f"memory peak {torch.ocl.max_memory_allocated() / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
