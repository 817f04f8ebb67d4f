"""Linear layers whose weights are kept in 8 or 4 bits and multiplied as they are; what chat.py does
to a model with --bits 8 and --bits 4."""

from __future__ import annotations

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

GROUP = 64  # weights of 4 bits that share a scale and a zero


class PackedLinear(torch.nn.Module):
    """``torch.nn.Linear`` of ``bits``, made of its weight [N, K] and bias, or None, on ocl: 8 with
    a scale for each row, 4 with a scale and a zero for each 64 weights of a row: ``(q - zero) *
    scale``."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, bits: int) -> None:
        super().__init__()
        self.n, self.bits = len(weight), bits
        self.register_buffer("bias", bias)
        weight = weight.float()
        if bits == 8:
            scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
            data, zero = (weight / scale).round().to(torch.int8), None
        else:
            groups = weight.view(self.n, -1, GROUP)
            least, most = groups.aminmax(dim=2)
            least, most = least.clamp(max=0), most.clamp(min=0)  # 0 is one of the 16 steps
            scale = ((most - least) / 15).clamp(min=6e-8).half()  # as it is kept
            zero = (-least / scale).half()
            q = (groups / scale[..., None] + zero[..., None]).round().clamp(0, 15)
            q = q.to(torch.uint8).view(self.n, -1)
            data = q[:, ::2] | q[:, 1::2] << 4
        self.register_buffer("data", data.contiguous())
        self.register_buffer("scale", scale)
        self.register_buffer("zero", zero)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kind, group = ("int8", 0) if self.bits == 8 else ("int4", GROUP)
        return torch.ops.ocl.quantised_mm(
            x, self.data, self.scale, self.zero, self.bias, kind, self.n, group
        )

    def extra_repr(self) -> str:
        return f"{self.n} rows of {self.bits} bits"


def pack(model: torch.nn.Module, bits: int, device: str) -> int:
    """Moves a model to ``device``, its linear layers one after another in ``bits``. How many these
    were: of 4 bits those whose rows are whole groups."""
    count = 0
    for name, layer in list(model.named_modules()):
        if type(layer) is torch.nn.Linear and (bits == 8 or layer.in_features % GROUP == 0):
            parts = (layer.weight, layer.bias)
            there = (None if p is None else p.detach().to(device) for p in parts)
            model.set_submodule(name, PackedLinear(*there, bits))
            count += 1
    model.to(device)
    return count
