"""Programs of ``launched/`` as ranks that a library's launcher starts, and what they answer."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import torch
from library_case import APART, PLUGIN  # noqa: F401  for the programs

PROGRAMS = pathlib.Path(__file__).resolve().parent / "launched"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
STEPS, ROWS = 4, 8  # of a network's training: steps, and rows of the joint batch
# Sums of a step's gradients in two parts instead of one, over STEPS steps of numbers near 1: some
# units in the last place of float32 (6e-8) each.
CLOSE = 5e-6


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))


def rows() -> torch.Tensor:
    """[STEPS * ROWS, 8]; the loss of `error` wants a row's first half from all of it."""
    return torch.randn(STEPS * ROWS, 8, generator=torch.Generator().manual_seed(1))


def error(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return (model(x).float() - x[:, :4].float()).square().mean()


def by_one_process() -> dict[str, torch.Tensor]:
    """Losses and parameters of training with the joint batch, on the CPU in float64."""
    model, losses = network().double(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for x in rows().double().split(ROWS):
        loss = error(model, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses), **{k: v.detach() for k, v in model.named_parameters()}}


def used() -> dict[str, Any]:
    """How this rank's collectives of ocl tensors went: the backend, and how many there were."""
    import torch.distributed as dist

    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("ocl"))
    number = backend._get_sequence_number_for_group()
    return {"backend": backend.name(), "collectives": number, "ranks": dist.get_world_size()}


def answer(folder: str, rank: int, **values: Any) -> None:
    torch.save(values, pathlib.Path(folder) / f"{rank}.pt")


def launch(program: str, folder: pathlib.Path, *launcher: str) -> list[dict[str, Any]]:
    """What both ranks answered; AssertionError with what they wrote if the program fails."""
    path = [os.environ.get("PYTHONPATH", ""), str(PROGRAMS.parent), str(APART)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *launcher, str(PROGRAMS / program), str(folder)],
        env={**kept, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
        | {"PYTHONWARNINGS": "ignore", "GLOO_SOCKET_IFNAME": "lo"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    files = [folder / f"{rank}.pt" for rank in range(2)]
    if done.returncode != 0 or not all(file.is_file() for file in files):
        raise AssertionError(f"{program} ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return [torch.load(file, weights_only=True) for file in files]
