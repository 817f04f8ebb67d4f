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


def networks(scale: Scale) -> list[Row]:
    """What users run, in the precision that they run it in."""
    half = {"autocast": "bfloat16", "fused": True}
    last = {"channels_last": True}
    llama = {"width": 1024, "layers": 12, "heads": 16, "groups": 4, "wide": 2816}
    table: list[tuple[str, str, int, int, dict[str, Any]]] = [
        # network, mode, batch on a GPU, size there (of a CPU: a quarter of both, at least 1 and 64)
        ("resnet50", "train", 64, 224, {"autocast": "bfloat16", **last}),
        ("resnet50", "train", 64, 224, {}),
        ("resnet50", "eval", 64, 224, {"dtype": "float16", **last}),
        ("convnext", "train", 32, 224, half),
        ("convnext", "train", 32, 224, {"fused": True}),
        ("vit", "train", 32, 224, half),
        ("bert", "train", 32, 128, half),
        ("bert", "train", 32, 128, {"fused": True}),
        ("gpt2", "train", 8, 1024, {**half, "dropout": 0.1}),
        ("llama training", "train", 4, 2048, {**half, **llama}),
        ("t5 encoder", "train", 16, 512, {"fused": True, "dropout": 0.1}),
        ("whisper encoder", "eval", 8, 3000, {"dtype": "float16"}),
        ("unet", "train", 16, 128, {"autocast": "bfloat16", "base": 64}),
        ("unet", "eval", 2, 256, {"dtype": "float16", "base": 64}),
        ("lstm", "train", 32, 128, {"fused": True}),
    ]
    rows = []
    for name, mode, batch, size, options in table:
        if not scale.gpu:
            images = name in ("resnet50", "convnext", "vit", "unet")
            batch, size = max(1, batch // 8), size if images else max(64, size // 8)
        rows.append(_network(name, mode, batch, size, **options))
    return rows


def _network(
    name: str, mode: str, batch: int, size: int, dtype: str = "float32", **options: Any
) -> Row:
    row = _model(name, mode, batch, size, "n", dtype, **options)
    kind = options.get("autocast") or dtype
    row.family, row.group = "networks", "network"
    row.name = f"{name.removesuffix(' training')} {mode} {kind} b{batch} n{size}"
    # A loss with dropout is of other numbers for each contestant; 16-bit logits went through 50
    # layers.
    row.tolerance = 0.1 if options.get("dropout") else 2e-2
    return row
