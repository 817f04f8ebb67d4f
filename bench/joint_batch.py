"""Training by ranks beside one process with the joint batch: the largest differences.

usage: joint_batch.py [--ranks 2] [--side ocl-gloo] [--only TEXT] [--steps 10]

ResNet-18 (64 x 64 pixels) and a BERT of 4 layers (width 256, 32 words), 8 samples a rank, SGD with
momentum, by each way of torch.distributed that a row of WAYS names. Each rank runs the joint batch
alone first, on its device, in the row's types. Shown are the largest differences of the losses of
all steps and of the parameters behind them, the largest parameter, and the joint batch's first and
last loss; a row fails beyond its
limit: in float32 the order of sums (1e-3), in 16 bits their rounding (0.1), PowerSGD approximates.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import scale_out
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

BATCH, WORDS, LENGTH, PIXELS = 8, 2000, 32, 64
RATES = {"resnet": 1e-3, "bert": 0.1}
EXACT, ROUNDED, APPROXIMATE = 1e-3, 0.1, 1.0
# name: model, what is done, its limit, and the least number of ranks
WAYS: dict[str, tuple[str, str, float, int]] = {
    "ResNet-18, DDP": ("resnet", "ddp", EXACT, 2),
    "ResNet-18, DDP, static graph": ("resnet", "ddp static", EXACT, 2),
    "ResNet-18, DDP, SyncBatchNorm": ("resnet", "ddp sync", EXACT, 2),
    "ResNet-18, DDP, AMP": ("resnet", "ddp amp", ROUNDED, 2),
    "BERT, DDP": ("bert", "ddp", EXACT, 2),
    "BERT, DDP, no_sync": ("bert", "ddp halves", EXACT, 2),
    "BERT, DDP, bf16 hook": ("bert", "ddp bf16", ROUNDED, 2),
    "BERT, DDP, PowerSGD": ("bert", "ddp power", APPROXIMATE, 2),
    "BERT, DDP, AMP": ("bert", "ddp amp", ROUNDED, 2),
    "BERT, FSDP2": ("bert", "fsdp", EXACT, 2),
    "BERT, FSDP2, bf16, sums in float32": ("bert", "fsdp bf16", ROUNDED, 2),
    "BERT, FSDP2, CPU offload": ("bert", "fsdp offload", EXACT, 2),
    "BERT, HSDP": ("bert", "hsdp", EXACT, 2),
    "BERT, tensor parallel": ("bert", "tp", EXACT, 2),
    "BERT, FSDP2 x tensor parallel": ("bert", "fsdp x tp", EXACT, 4),
    "BERT, pipeline, 1F1B": ("bert", "pipeline", EXACT, 2),
}


class Bert(nn.Module):
    """Stages of a BERT in a row, so that a pipeline can have some of them."""

    def __init__(self) -> None:
        super().__init__()
        from networks.language import Transformer

        whole = Transformer(WORDS, LENGTH, width=256, layers=4, heads=4)
        self.words, self.places = whole.words, whole.places
        self.blocks, self.norm = whole.blocks, whole.norm
        self.head = nn.Linear(256, WORDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.words is not None:
            x = self.words(x) + self.places.weight[: x.shape[1]]
        x = self.blocks(x)
        return x if self.head is None else self.head(self.norm(x))

    def stage(self, index: int, count: int) -> Bert:
        each = len(self.blocks) // count
        self.blocks = self.blocks[index * each : (index + 1) * each]
        if index > 0:
            self.words = self.places = None
        if index < count - 1:
            self.norm = self.head = None
        return self


def build(kind: str, way: str) -> nn.Module:
    torch.manual_seed(0)
    if kind == "bert":
        return Bert()
    from networks.vision import ResNet

    model = ResNet((2, 2, 2, 2), deep=False)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight)
        elif isinstance(layer, nn.BatchNorm2d) and "sync" not in way:
            nn.init.constant_(layer.weight, 0.5)  # results of all blocks stay near 1
    # Each rank has statistics of its own but with SyncBatchNorm; else fixed ones serve.
    return model if "sync" in way else model.eval()


def batch(kind: str, step: int, ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(step)
    count = BATCH * ranks
    if kind == "resnet":
        images = torch.randn(count, 3, PIXELS, PIXELS, generator=random)
        return images, torch.randint(1000, (count,), generator=random)
    pair = torch.randint(WORDS, (2, count, LENGTH), generator=random)
    return pair[0], pair[1]


def error(results: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(results.flatten(0, -2).float(), labels.flatten())


@contextlib.contextmanager
def types(way: str, device: torch.device) -> Iterator[None]:
    with torch.autocast(device.type, torch.bfloat16, enabled="amp" in way):
        yield


def train(
    step: Callable[[int], torch.Tensor], model: nn.Module, steps: int, rate: float
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    # In a list operator all tensors have to be DTensors, or none.
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, foreach=False)
    losses = []
    for number in range(steps):
        optimizer.zero_grad()
        losses.append(step(number).detach())
        optimizer.step()
    return torch.stack(losses), {
        name.removeprefix("module."): p.detach() for name, p in model.named_parameters()
    }


def alone(kind: str, way: str, device: torch.device, ranks: int, steps: int) -> Any:
    model = build(kind, way).to(device)
    lower = torch.bfloat16 if way == "fsdp bf16" else None

    def step(number: int) -> torch.Tensor:
        x, labels = (t.to(device) for t in batch(kind, number, ranks))
        with types(way, device), torch.autocast(device.type, lower, enabled=lower is not None):
            loss = error(model(x), labels)
        loss.backward()
        return loss

    return train(step, model, steps, RATES[kind])


def wrapped(kind: str, way: str, device: torch.device, ranks: int) -> nn.Module:
    from torch.distributed import fsdp
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import parallel

    model = build(kind, way).to(device)
    if "ddp" in way:
        if "sync" in way:
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        model = nn.parallel.DistributedDataParallel(model, static_graph="static" in way)
        if "bf16" in way:
            model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        if "power" in way:
            state = powerSGD_hook.PowerSGDState(
                None, matrix_approximation_rank=8, start_powerSGD_iter=2
            )
            model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return model
    if "tp" in way:
        mesh = init_device_mesh(device.type, (ranks // 2, 2), mesh_dim_names=("data", "tp"))
        for block in model.blocks:
            plan = {"wide": parallel.ColwiseParallel(), "narrow": parallel.RowwiseParallel()}
            parallel.parallelize_module(block, mesh["tp"], plan)
        if "fsdp" not in way:
            return model
        mesh = mesh["data"]
    elif way == "hsdp":
        mesh = init_device_mesh(device.type, (2, ranks // 2), mesh_dim_names=("copies", "parts"))
    else:
        mesh = init_device_mesh(device.type, (ranks,))
    options: dict[str, Any] = {"mesh": mesh}
    if "bf16" in way:
        options["mp_policy"] = fsdp.MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    if "offload" in way:
        options["offload_policy"] = fsdp.CPUOffloadPolicy()
    for block in model.blocks:
        fsdp.fully_shard(block, **options)
    return fsdp.fully_shard(model, **options)


def together(kind: str, way: str, device: torch.device, ranks: int, steps: int) -> Any:
    rank = dist.get_rank()
    if way == "pipeline":
        return pipeline(kind, device, ranks, steps)
    model = wrapped(kind, way, device, ranks)
    # Ranks of one model in parts get the same samples.
    groups = ranks // 2 if "tp" in way else ranks
    mine = rank // 2 if "tp" in way else rank

    def step(number: int) -> torch.Tensor:
        x, labels = (t.chunk(groups)[mine].to(device) for t in batch(kind, number, ranks))
        parts = 2 if "halves" in way else 1
        losses = []
        for k, (part, wanted) in enumerate(zip(x.chunk(parts), labels.chunk(parts), strict=True)):
            with model.no_sync() if k < parts - 1 else contextlib.nullcontext():
                with types(way, device):
                    loss = error(model(part), wanted) / parts
                loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    losses, parameters = train(step, model, steps, RATES[kind])
    dist.all_reduce(losses, dist.ReduceOp.AVG)
    return losses, parameters


def pipeline(kind: str, device: torch.device, ranks: int, steps: int) -> Any:
    """Stages are as many as ranks, or 4, which BERT has layers for; micro-batches of 4 samples."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank = dist.get_rank()
    model = build(kind, "pipeline").stage(rank, ranks).to(device)
    stage = PipelineStage(model, rank, ranks, device)
    schedule = Schedule1F1B(stage, n_microbatches=2 * ranks, loss_fn=error)

    def step(number: int) -> torch.Tensor:
        x, labels = (t.to(device) for t in batch(kind, number, ranks))
        losses: list[torch.Tensor] = []
        given = (x,) if rank == 0 else ()
        last = {"target": labels, "losses": losses} if rank == ranks - 1 else {}
        schedule.step(*given, **last)
        return torch.stack(losses).mean() if losses else torch.zeros((), device=device)

    losses, parameters = train(step, model, steps, RATES[kind])
    dist.broadcast(losses, ranks - 1)
    return losses, parameters


def compare(row: str, side: str, device: torch.device, steps: int) -> list[float]:
    """Largest differences of losses and of parameters, the largest parameter: of all ranks."""
    kind, way, _, _ = WAYS[row]
    ranks = dist.get_world_size()
    want = alone(kind, way, device, ranks, steps)
    got = together(kind, way, device, ranks, steps)
    progress = [float(want[0][0]), float(want[0][-1])]
    values = [float((got[0].double().cpu() - want[0].double().cpu()).abs().max()), 0.0, 0.0]
    for name, p in got[1].items():
        whole = p.full_tensor() if hasattr(p, "full_tensor") else p
        expected = want[1][name].double().cpu()
        values[1] = max(values[1], float((whole.double().cpu() - expected).abs().max()))
        values[2] = max(values[2], float(expected.abs().max()))
    if not all(map(torch.isfinite, torch.tensor(values))):
        raise AssertionError(f"{row}: not finite")
    worst = torch.tensor(values, device=device)
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    return worst.tolist() + progress


def child(order: dict[str, Any]) -> None:
    import os

    torch.set_num_threads(order["threads"])
    scale_out.start_group(order["side"])
    device = scale_out.device_of(order["side"], int(os.environ.get("LOCAL_RANK", dist.get_rank())))
    answer = compare(order["row"], order["side"], device, order["steps"])
    if dist.get_rank() == 0:
        print("answer", json.dumps(answer), flush=True)
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--side", choices=scale_out.SIDES, default="ocl-gloo")
    parser.add_argument("--only", action="append", default=None)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--patience", type=float, default=600, help="seconds for a row")
    parser.add_argument("--child", type=json.loads)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
        return 0
    wrong = 0
    print(
        f"{options.side}, {options.ranks} ranks: largest differences of losses and of parameters,"
        " the largest parameter, the first loss and the last"
    )
    for row, (_, _, limit, least) in WAYS.items():
        if options.ranks < least or not any(text in row for text in options.only or [""]):
            continue
        order = {
            "side": options.side,
            "row": row,
            "steps": options.steps,
            "grouped": True,
            "threads": scale_out.threads_of(options.ranks),
            "patience": options.patience,
        }
        answer, why = scale_out.run(order, options.ranks, __file__)
        if answer is None:
            wrong += 1
            print(f"{row:<38} {why}", flush=True)
            continue
        loss, parameter, *shown = answer
        is_wrong = max(loss, parameter) > limit
        wrong += is_wrong
        rest = "  ".join(f"{x:.4f}" for x in shown) + "  WRONG" * is_wrong
        print(f"{row:<38} {loss:9.2e} {parameter:9.2e}  {rest}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
