"""Rows that need PyTorch on both sides: small operators as whole Python calls, optimizer steps,
models."""

from __future__ import annotations

from typing import Any

from rows import Row, Scale

CALLS = (
    "a + b",
    "torch.add(out=)",
    "out.add_(b)",
    "relu",
    "a.sum()",
    "a @ b",
    "a[1:] * 2",
    "a + b by a custom kernel",
    "a + b by a prepared kernel",
)


def small(scale: Scale) -> list[Row]:
    result = [
        Row(
            "torch",
            f"{call}, 256 elements",
            "small",
            [call, 256],
            [],
            group="small" if call == "a + b" else "",
            tolerance=1e-5,
            only="torch",
        )
        for call in CALLS
    ]
    return result + [
        Row(
            "torch",
            f"{kind} step, {name}",
            "optimizer",
            [kind, name],
            [],
            tolerance=1e-5,
            only="torch",
            group="optimizer",
        )
        for kind in ("AdamW", "AdamW fused", "SGD momentum")
        for name in scale.pick(("resnet50",), ("resnet50", "gpt2"))
    ]


def _model(
    name: str,
    mode: str,
    batch: int,
    size: int,
    unit: str,
    dtype: str = "float32",
    label: str = "",
    **options: Any,
) -> Row:
    exact = 1e-2 if mode == "train" or dtype != "float32" else 1e-3
    return Row(
        "models",
        f"{name} {label or mode} b{batch} {unit}{size}",
        "model",
        [name, mode, batch, size, dtype, options],
        [],
        group=f"model {mode}",
        tolerance=exact,
        only="torch",
    )


def models(scale: Scale) -> list[Row]:
    images, texts = scale.pick(4, 32), scale.pick((1, 128), (32, 128))
    result = []
    for mode in ("eval", "train"):
        result += [
            _model(name, mode, images, 224, "") for name in ("resnet18", "resnet50", "mobilenetv3")
        ]
        result += [
            _model("bert", mode, *texts, "n"),
            _model("gpt2", mode, *scale.pick((1, 128), (8, 1024)), "n"),
        ]
        result += [
            _model("unet", mode, *scale.pick((1, 128), (8, 256)), "", base=scale.pick(32, 64))
        ]
    context = scale.pick(512, 2048)
    small = {"width": 1024, "layers": 8, "heads": 16, "groups": 4, "wide": 2816}
    large = {"width": 2048, "layers": 16, "heads": 32, "groups": 8, "wide": 8192}
    result.append(
        _model(
            "llama",
            "eval",
            1,
            1,
            "context",
            scale.pick("float32", "float16"),
            "decode",
            context=context,
            **scale.pick(small, large),
        )
    )
    result[-1].name = f"llama decode b1 context {context}"
    return result
