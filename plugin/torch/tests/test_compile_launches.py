"""How many commands compiled models enqueue, beside eager mode: exact numbers, which may only fall.

Small models of the same make as large ones: two layers, or two blocks a stage. A launch costs a
driver some microseconds whatever it does, so these numbers are what compilation is worth for small
work."""

from __future__ import annotations

import dataclasses
import unittest
from collections.abc import Callable

import torch
import torch.nn.functional as F
from compile_case import CompileCase, launches
from gpu_style import IS_GPU_STYLE, THOROUGH, InGpuStyle, for_gpus
from torch import nn

WORDS, WIDTH = 97, 64


@dataclasses.dataclass
class Row:
    """Launches of a call after the first, in eager mode and compiled."""

    make: Callable[[], Callable[[bool], Callable[[], object]]]
    cpu: tuple[int, int]
    gpu: tuple[int, int]
    """In GPU style."""
    most: float | None = None
    """The largest share of eager's launches that is asked for, in CPU style."""


def _training(model: nn.Module, inputs: dict[str, torch.Tensor]) -> Callable:
    """Forward and backward, with dropout."""
    model = model.to("ocl").train()
    inputs = {name: tensor.to("ocl") for name, tensor in inputs.items()}

    def calls(compiled: bool) -> Callable[[], object]:
        run = torch.compile(model) if compiled else model

        def step() -> None:
            model.zero_grad()
            run(**inputs).loss.backward()

        return step

    return calls


def _language(name: str, head: str, **options: object) -> Callable:
    import transformers

    config = getattr(transformers, f"{name}Config")(vocab_size=WORDS, **options)
    ids = torch.randint(WORDS, (2, 16))
    model = getattr(transformers, f"{name}{head}")(config)
    return _training(model, {"input_ids": ids, "labels": ids})


def llama() -> Callable:
    return _language(
        "Llama",
        "ForCausalLM",
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )


def gpt2() -> Callable:
    return _language("GPT2", "LMHeadModel", n_positions=32, n_embd=WIDTH, n_layer=2, n_head=4)


def bert(layers: int = 2) -> Callable:
    return _language("Bert", "ForMaskedLM", **_bert(layers))


def _bert(layers: int) -> dict[str, int]:
    return {
        "hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "max_position_embeddings": 32,
    }


def minilm() -> Callable:
    """Sentences as a search engine encodes them: six layers, a mean over words, a norm."""
    import transformers

    model = transformers.BertModel(transformers.BertConfig(vocab_size=WORDS, **_bert(6)))
    model = model.to("ocl").eval()
    ids = torch.randint(WORDS, (2, 16), device="ocl")
    mask = torch.ones_like(ids)

    def encode(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        words = model(ids, attention_mask=mask).last_hidden_state
        lengths = mask.sum(1, keepdim=True)
        return F.normalize((words * mask.unsqueeze(-1)).sum(1) / lengths)

    def calls(compiled: bool) -> Callable[[], object]:
        run = torch.compile(encode) if compiled else encode
        return torch.no_grad()(lambda: run(ids, mask))

    return calls


def resnet() -> Callable:
    import transformers

    config = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[2, 2], num_labels=5
    )
    model = transformers.ResNetForImageClassification(config)
    inputs = {"pixel_values": torch.randn(4, 3, 32, 32), "labels": torch.randint(5, (4,))}
    return _training(model, inputs)


def optimizer(make: Callable[..., torch.optim.Optimizer], **options: object) -> Callable:
    """A step of 20 weights and biases."""
    layers = nn.Sequential(*(nn.Linear(24, 24) for _ in range(10))).to("ocl")
    for parameter in layers.parameters():
        parameter.grad = torch.randn_like(parameter)
    own = make(layers.parameters(), **options)
    own.step()

    def calls(compiled: bool) -> Callable[[], object]:
        return torch.compile(own.step) if compiled else own.step

    return calls


TABLE = {
    "llama, training": Row(llama, cpu=(289, 103), gpu=(313, 140), most=0.40),
    "gpt2, training": Row(gpt2, cpu=(169, 94), gpu=(174, 110), most=0.60),
    "bert, training": Row(bert, cpu=(153, 106), gpu=(174, 123), most=0.70),
    "resnet, training": Row(resnet, cpu=(198, 147), gpu=(164, 142), most=0.85),
    "minilm": Row(minilm, cpu=(108, 76), gpu=(126, 93), most=0.71),
    "adamw": Row(lambda: optimizer(torch.optim.AdamW, lr=0.01), cpu=(8, 2), gpu=(8, 2)),
    "adam": Row(lambda: optimizer(torch.optim.Adam, lr=0.01), cpu=(7, 2), gpu=(7, 2)),
    "sgd": Row(lambda: optimizer(torch.optim.SGD, lr=0.01, momentum=0.9), cpu=(3, 1), gpu=(3, 1)),
}
EACH_RUN = ("adamw",) if IS_GPU_STYLE else ("bert, training", "adamw")


@unittest.skipUnless(torch.__version__.startswith("2.13"), "other versions fuse other nodes")
class Launches(InGpuStyle, CompileCase):
    OPTIMISED = False

    def test_table(self) -> None:
        for name in TABLE if THOROUGH else EACH_RUN:
            with self.subTest(name):
                torch._dynamo.reset()
                torch.manual_seed(3)
                row, counts = TABLE[name], []
                calls = row.make()
                for compiled in (False, True):
                    call = calls(compiled)
                    call(), call()
                    counts.append(launches(call))
                self.assertEqual(tuple(counts), row.gpu if for_gpus() else row.cpu)

    def test_goals(self) -> None:
        for name, row in TABLE.items():
            if row.most is not None:
                with self.subTest(name):
                    self.assertLessEqual(row.cpu[1], row.most * row.cpu[0])


if __name__ == "__main__":
    unittest.main()
