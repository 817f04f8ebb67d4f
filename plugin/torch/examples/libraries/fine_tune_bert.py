"""transformers' Trainer fine-tunes a small BERT with random weights on `ocl` and on the CPU.

usage: fine_tune_bert.py [--device ocl] [--steps 60]; ends with an error where losses differ by more
than LIMIT, or where the network has not learnt which sentences have the word.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from typing import Any

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

WORDS, LENGTH, WORD = 100, 12, 7
# Both devices add the same float32 numbers in another order, and Adam divides small gradients by
# small ones.
LIMIT = 2e-3


def sentences(count: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Half of them have the word, anywhere."""
    draw = random.Random(seed)
    rows = []
    for i in range(count):
        words = [draw.randrange(WORD + 1, WORDS) for _ in range(LENGTH)]
        if i % 2:
            words[draw.randrange(LENGTH)] = WORD
        rows.append({"input_ids": torch.tensor(words), "labels": torch.tensor(i % 2)})
    return rows


def train(device: str, steps: int = 60, batch: int = 16, **options: Any) -> dict[str, Any]:
    """Losses, the accuracy on other sentences, seconds, and the Trainer itself.

    ``batch`` is each process's; ``options`` are those of TrainingArguments.
    """
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,  # the devices' random numbers differ
        attention_probs_dropout_prob=0.0,
    )
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=steps,
        per_device_train_batch_size=batch,
        learning_rate=3e-3,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=device == "cpu",
        **options,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=sentences(256, 1),
        compute_metrics=lambda p: {"accuracy": (p.predictions.argmax(1) == p.label_ids).mean()},
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    accuracy = trainer.evaluate(sentences(64, 2))["eval_accuracy"]
    return {"losses": losses, "accuracy": accuracy, "seconds": seconds, "trainer": trainer}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--device", default="ocl", choices=("ocl", "cpu"))
    p.add_argument("--steps", type=int, default=60)
    options = p.parse_args()
    got, want = train(options.device, options.steps), train("cpu", options.steps)
    # Later losses amplify the rounding of earlier ones.
    worst = max(abs(a - b) for a, b in zip(got["losses"][:10], want["losses"][:10]))
    device = got["trainer"].args.device
    print(
        f"Trainer on {device}: {options.steps} steps in {got['seconds']:.1f} s "
        f"(CPU {want['seconds']:.1f} s), loss {got['losses'][-1]:.4f} "
        f"(CPU {want['losses'][-1]:.4f}), accuracy {got['accuracy']:.3f}, "
        f"first ten losses differ by {worst:.1e}"
    )
    return 0 if worst <= LIMIT and device.type == options.device else 1


if __name__ == "__main__":
    sys.exit(main())
