"""Convolutions: the layers of ResNet-18 and ResNet-50 in all three directions; depthwise, grouped,
transposed."""

from __future__ import annotations

import dataclasses

from rows import Row, Scale, Tensor

DIRECTIONS = ("forward", "backward data", "backward weight")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A square convolution with padding that keeps the size; `count`: how often its model has
    it."""

    inside: int
    size: int
    outside: int
    kernel: int
    stride: int = 1
    count: int = 1
    groups: int = 1
    transposed: bool = False

    @property
    def padding(self) -> int:
        return 0 if self.transposed else self.kernel // 2

    @property
    def out_size(self) -> int:
        if self.transposed:
            return (self.size - 1) * self.stride + self.kernel
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    def __str__(self) -> str:
        kind = (
            f"{self.groups} groups "
            if self.groups > 1
            else "transposed "
            if self.transposed
            else ""
        )
        if self.groups == self.inside:
            kind = "depthwise "
        return (
            f"{kind}{self.inside}x{self.size} -> {self.outside} {self.kernel}x{self.kernel} "
            f"s{self.stride}"
        )


RESNET18 = [
    Layer(3, 224, 64, 7, 2),
    Layer(64, 56, 64, 3, 1, 4),
    Layer(64, 56, 128, 3, 2),
    Layer(64, 56, 128, 1, 2),
    Layer(128, 28, 128, 3, 1, 3),
    Layer(128, 28, 256, 3, 2),
    Layer(128, 28, 256, 1, 2),
    Layer(256, 14, 256, 3, 1, 3),
    Layer(256, 14, 512, 3, 2),
    Layer(256, 14, 512, 1, 2),
    Layer(512, 7, 512, 3, 1, 3),
]


OTHERS = [
    Layer(32, 112, 32, 3, groups=32),
    Layer(144, 56, 144, 3, groups=144),
    Layer(384, 14, 384, 3, groups=384),
    Layer(240, 28, 240, 5, 2, groups=240),
    Layer(128, 28, 128, 3, groups=32),
    Layer(128, 28, 64, 2, 2, transposed=True),
]


def resnet50() -> list[Layer]:
    """Its distinct layers with their counts (He et al. 2015; the stride lies in the 3x3, as
    torchvision has it)."""
    layers: dict[Layer, int] = {Layer(3, 224, 64, 7, 2): 1}
    inside, size = 64, 56
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            found = [Layer(inside, size, width, 1), Layer(width, size, width, 3, stride)]
            if block == 0:
                found.append(Layer(inside, size, 4 * width, 1, stride))
            size //= stride
            found.append(Layer(width, size, 4 * width, 1))
            inside = 4 * width
            for layer in found:
                layers[layer] = layers.get(layer, 0) + 1
    return [dataclasses.replace(layer, count=count) for layer, count in layers.items()]


def convolution(
    layer: Layer,
    batch: int,
    direction: str,
    model: str = "",
    dtype: str = "float32",
    channels_last: bool = False,
) -> Row:
    x = Tensor((batch, layer.inside, layer.size, layer.size), dtype, channels_last=channels_last)
    ends = (layer.inside, layer.outside) if layer.transposed else (layer.outside, layer.inside)
    w = Tensor(
        (ends[0], ends[1] // layer.groups, layer.kernel, layer.kernel),
        dtype,
        channels_last=channels_last,
    )
    y = Tensor(
        (batch, layer.outside, layer.out_size, layer.out_size), dtype, channels_last=channels_last
    )
    tail = [[layer.stride] * 2, [layer.padding] * 2, [1, 1], layer.transposed, [0, 0], layer.groups]
    positions = layer.size if layer.transposed else layer.out_size
    flops = (
        2.0 * batch * layer.outside * layer.inside // layer.groups * positions**2 * layer.kernel**2
    )
    tail_name = (
        f" {dtype} {'channels_last' if channels_last else ''}".rstrip()
        if dtype != "float32"
        else ""
    )
    label = f"{model} " if model else ""
    count = f" (x{layer.count})" if layer.count > 1 else ""
    name = f"{direction}: {label}{layer}{tail_name} b{batch}{count}"
    group = (
        f"{model} {direction} {dtype}{' channels_last' if channels_last else ''}" if model else ""
    )
    cost = {
        "flops": flops,
        "bytes": float(x.bytes + w.bytes + y.bytes),
        "group": group,
        "weight": layer.count,
        "tolerance": 1e-4 if dtype == "float32" else -1.0,
    }
    if direction == "forward":
        return Row("conv", name, "convolution.out", [x, w, None, *tail], [y], **cost)
    data = direction == "backward data"
    nothing = Tensor((0,), dtype)
    return Row(
        "conv",
        name,
        "convolution_backward.out",
        [y, x, w, None, *tail, [data, not data, False]],
        [x if data else nothing, nothing if data else w, nothing],
        check=(0 if data else 1,),
        **cost,
    )


def rows(scale: Scale) -> list[Row]:
    batch = scale.pick(4, 32)
    models = [("resnet18", RESNET18)] if scale.full or not scale.gpu else []
    models.append(("resnet50", resnet50()))
    kinds = [("float32", False)]
    if scale.gpu:
        kinds += [("float16", True), *([("float16", False)] if scale.full else [])]
    result = [
        convolution(layer, batch, direction, model, dtype, last)
        for model, layers in models
        for dtype, last in kinds
        for direction in DIRECTIONS
        for layer in layers
        if direction != "backward data"
        or layer.inside > 3  # nobody asks for the gradient of images
    ]
    return result + [
        convolution(layer, batch, direction) for layer in OTHERS for direction in DIRECTIONS
    ]
