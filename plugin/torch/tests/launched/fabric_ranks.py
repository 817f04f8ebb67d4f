"""Fabric by torchrun's ranks: DDP in float32 and bfloat16, and FSDP."""

import sys

import torch
import torch_ocl  # noqa: F401
from launched_case import ROWS, answer, error, network, rows, used
from lightning.fabric import Fabric


def train(strategy, precision):
    fabric = Fabric(accelerator="ocl", devices="auto", strategy=strategy, precision=precision)
    fabric.launch()
    model = fabric.setup_module(network())
    optimizer = fabric.setup_optimizers(torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))
    batches = fabric.setup_dataloaders(torch.utils.data.DataLoader(rows(), ROWS // 2))
    losses = []
    for x in batches:
        loss = error(model, x)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        losses.append(fabric.all_reduce(loss.detach(), reduce_op="mean").cpu())
    return fabric, {
        "model": type(model._forward_module).__name__,
        "device": str(fabric.device),
        "losses": torch.stack(losses),
    }


results = {}
for name, strategy, precision in (
    ("ddp", "ddp", "32-true"),
    ("bf16", "ddp", "bf16-mixed"),
    ("fsdp", "fsdp", "32-true"),
    ("fsdp_bf16", "fsdp", "bf16-mixed"),
):
    fabric, results[name] = train(strategy, precision)
answer(sys.argv[1], fabric.global_rank, **results, **used())
