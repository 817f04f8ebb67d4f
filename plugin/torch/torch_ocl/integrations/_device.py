"""What integrations have in common: which device to choose, and random states in checkpoints."""

import itertools
import os
import pathlib
import sys

import torch

from torch_ocl import _C, _launcher


def chosen() -> torch.device | None:
    """The device for a library that found no accelerator, or None.

    ocl where it is torch's current accelerator and CUDA and XPU have no device: libraries that ask
    for those first go on to.
    """
    if not torch.ocl.is_available() or torch.cuda.is_available() or torch.xpu.is_available():
        return None
    current = torch.accelerator.current_accelerator()
    if current is None or current.type != "ocl":
        return None
    return torch.device("ocl", torch.ocl.current_device())


def are_cpus() -> bool:
    """Whether all devices are CPUs, which several processes may share."""
    return all(torch.ocl.get_device_properties(i).kind == "cpu" for i in _indices())


def count_alike() -> int:
    """How many processes a program is to have that takes all devices: one for each that is like the
    first. CPUs serve as many as a launcher has started on this host; an interactive session, which
    cannot start others, has one."""
    _, ranks = _launcher.place()
    if ranks > 1 and are_cpus():
        return ranks
    if hasattr(sys, "ps1"):
        return 1
    names = [torch.ocl.get_device_name(i) for i in _indices()]
    return len(list(itertools.takewhile(lambda name: name == names[0], names)))


def of_process(index: int) -> torch.device:
    """The device of the host's process with this number. Processes share CPUs, of which there may
    be fewer; RuntimeError where GPUs are too few, unless the script has chosen one and called
    ``torch.ocl.init()``."""
    count = torch.ocl.device_count()
    if index >= count and not are_cpus():
        if _C.is_initialized():
            return torch.device("ocl", torch.ocl.current_device())
        raise RuntimeError(
            f"ocl: process {index} of this host has no device, as there are {count} ocl devices: "
            "start one process for each"
        )
    return torch.device("ocl", index % count)


def check_launcher() -> None:
    """RuntimeError where several processes were started, and none knows which of its host's it is:
    each would train alone."""
    for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        started = os.environ.get(name, "")
        if started.isdecimal() and int(started) > 1:
            raise RuntimeError(
                f"ocl: {name} says {started} processes, and LOCAL_RANK does not say which one of "
                "this host this is: start them by torchrun or accelerate launch, or set LOCAL_RANK"
            )


def _indices() -> range:
    return range(torch.ocl.device_count())


def save_random_states(file: str | pathlib.Path) -> None:
    """Writes the states of all ocl devices' generators, beside what a library writes itself."""
    if torch.ocl.is_initialized():
        torch.save(torch.ocl.get_rng_state_all(), file)


def load_random_states(file: str | pathlib.Path) -> None:
    """Reads them back, where there are some for as many devices."""
    if not pathlib.Path(file).is_file():
        return
    states = torch.load(file, weights_only=True)
    if len(states) == torch.ocl.device_count():
        torch.ocl.set_rng_state_all(states)
