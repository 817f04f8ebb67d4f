"""Teaches a language model new answers with LoRA: its weights stay, matrices beside them learn.

usage: fine_tune_lora.py FOLDER ADAPTER [--device ocl] [--data FILE] [--steps 150] [--rank 8]
                         [--dtype float32]

FOLDER is a model as chat.py takes it, ADAPTER where the learnt matrices go. --data is a file with a
{"question": ..., "answer": ...} in each line; without it the model learns NEW. Ends with an error
where it has not learnt the answers, or where a weight of the model has changed.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is loaded over the network

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from peft import LoraConfig, get_peft_model
from small_chat_model import GOAL, batch_of, conversations, known, learn
from transformers import AutoModelForCausalLM, AutoTokenizer

NEW = {
    "Who are you?": "Arr, I be a pirate of few words and fewer weights!",
    "When do owls hunt?": "By moonlight, matey, as all good pirates do.",
    "What is OpenCL?": "The flag under which every GPU may sail.",
    "Goodbye!": "Fair winds, and mind the rocks!",
}


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("folder")
    p.add_argument("adapter")
    p.add_argument("--device", default="ocl")
    p.add_argument("--data", type=pathlib.Path)
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--rank", type=int, default=8)
    p.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    options = p.parse_args()
    answers = NEW
    if options.data:
        rows = [json.loads(line) for line in options.data.read_text().splitlines() if line]
        answers = {row["question"]: row["answer"] for row in rows}
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(options.folder, local_files_only=True)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    base = AutoModelForCausalLM.from_pretrained(
        options.folder,
        dtype=getattr(torch, options.dtype),
        device_map=options.device,
        local_files_only=True,
    )
    batches = [batch_of(tokenizer, conversations(answers, i), options.device) for i in range(16)]
    before = known(base, batches[0])
    old = {name: weight.clone() for name, weight in base.named_parameters()}
    config = LoraConfig(
        r=options.rank,
        lora_alpha=2 * options.rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(base, config)
    trained, all_weights = model.get_nb_trainable_parameters()
    print(f"trained weights: {trained:,} of {all_weights:,}")
    start = time.perf_counter()
    loss = learn(model, batches, options.steps, 1e-2)
    seconds = time.perf_counter() - start
    after = known(model, batches[0])
    model.save_pretrained(options.adapter)
    kept = all(
        torch.equal(old[name.replace("base_layer.", "")], weight)
        for name, weight in base.named_parameters()
        if "lora_" not in name
    )
    print(
        f"{options.device}: {options.steps} steps in {seconds:.1f} s, loss {loss:.3f}; of the new "
        f"answers' tokens {before:.0%} were right before, {after:.0%} after; saved in "
        f"{options.adapter}"
    )
    return 0 if after >= GOAL and kept else 1


if __name__ == "__main__":
    sys.exit(main())
