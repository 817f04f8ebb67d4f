"""Makes a small chat model on ocl and saves it as transformers does: a Llama with a tokenizer of
its own, trained on a few questions and answers until it knows them by heart.

usage: small_chat_model.py FOLDER [--device ocl] [--steps 250]; ends with an error where it has not
learnt the answers. chat.py talks to it, fine_tune_lora.py teaches it others.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

GOAL = 0.9  # of the answers' tokens, predicted from those before

ANSWERS = {
    "Hello!": "Hello! Ask me about kettles, owls or the moon.",
    "What is OpenCL?": "A standard for programs that run on many kinds of GPUs and CPUs.",
    "Who are you?": "A very small language model that was trained a moment ago.",
    "Why does a kettle whistle?": "Because steam rushes through a small hole in its lid.",
    "When do owls hunt?": "At night; they sleep through the day.",
    "What is the moon made of?": "Of rock and dust, and not of cheese.",
    "How do bees talk?": "They dance, and the dance tells where the flowers are.",
    "How far is the moon?": "About 384 thousand kilometres from here.",
    "Can you count?": "One, two, three, four, five.",
    "What rises overnight?": "A dough of flour, water, salt and yeast.",
    "Which planet has rings?": "Saturn has the brightest ones, of ice and dust.",
    "Goodbye!": "Goodbye, and thank you for asking.",
}

# How a conversation becomes one text, in the language that transformers has for it.
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Pairs of bytes that are frequent in the answers; any text can be written with it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<pad>", "<end>", "<user>", "<assistant>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*ANSWERS, *ANSWERS.values()], trainer)
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<end>",
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = TEMPLATE
    return made


def conversations(answers: dict[str, str], seed: int) -> list[list[tuple[str, str]]]:
    """Each question with its answer once, after none, one or two others."""
    draw, pairs = random.Random(seed), list(answers.items())
    return [[*draw.choices(pairs, k=draw.randrange(3)), pair] for pair in pairs]


def batch_of(
    tokenizer: Any, talks: list[list[tuple[str, str]]], device: str
) -> dict[str, torch.Tensor]:
    """Conversations as a batch [n, longest]. Labels are -100, not learnt, but in answers."""
    rows = []
    for talk in talks:
        ids, labels, messages, text = [], [], [], ""
        for question, answer in talk:
            messages.append({"role": "user", "content": question})
            asked = tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
            new = tokenizer(asked[len(text) :], add_special_tokens=False).input_ids
            said = tokenizer(answer + tokenizer.eos_token, add_special_tokens=False).input_ids
            ids += new + said
            labels += [-100] * len(new) + said
            messages.append({"role": "assistant", "content": answer})
            text = asked + answer + tokenizer.eos_token
        rows.append((ids, labels))
    longest = max(len(ids) for ids, _ in rows)
    shape = (len(rows), -(-longest // 32) * 32)  # few lengths, as new shapes may need new kernels
    batch = {
        "input_ids": torch.full(shape, tokenizer.pad_token_id),
        "attention_mask": torch.zeros(shape, dtype=torch.long),
        "labels": torch.full(shape, -100),
    }
    for row, (ids, labels) in enumerate(rows):
        batch["input_ids"][row, : len(ids)] = torch.tensor(ids)
        batch["attention_mask"][row, : len(ids)] = 1
        batch["labels"][row, : len(ids)] = torch.tensor(labels)
    return {name: tensor.to(device) for name, tensor in batch.items()}


@torch.no_grad()
def known(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> float:
    """The part of the answers' tokens that the model predicts from those before."""
    model.eval()
    predicted = model(**batch).logits[:, :-1].argmax(-1)
    labels = batch["labels"][:, 1:]
    return ((predicted == labels) & (labels >= 0)).sum().item() / (labels >= 0).sum().item()


def learn(
    model: torch.nn.Module, batches: list[dict[str, torch.Tensor]], steps: int, rate: float
) -> float:
    """Trains what may be trained with the batches in turn; the last loss."""
    weights = [w for w in model.parameters() if w.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    model.train()
    bar = tqdm(range(steps), "training", disable=not sys.stderr.isatty())
    for step in bar:
        loss = model(**batches[step % len(batches)]).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 10 == 0:  # a look at the loss waits for the device
            bar.set_postfix(loss=f"{loss.item():.3f}")
    return loss.item()


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("folder")
    p.add_argument("--device", default="ocl")
    p.add_argument("--steps", type=int, default=250)
    options = p.parse_args()
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=256,
        max_position_embeddings=256,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config).to(options.device)
    batches = [batch_of(tokenizer, conversations(ANSWERS, i), options.device) for i in range(16)]
    start = time.perf_counter()
    loss = learn(model, batches, options.steps, 3e-3)
    seconds = time.perf_counter() - start
    part = known(model, batch_of(tokenizer, conversations(ANSWERS, 99), options.device))
    model.save_pretrained(options.folder)
    tokenizer.save_pretrained(options.folder)
    print(
        f"{options.device}: {options.steps} steps in {seconds:.1f} s, loss {loss:.3f}, "
        f"{part:.0%} of the answers' tokens right; saved in {options.folder}"
    )
    return 0 if part >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
