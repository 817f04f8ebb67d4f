"""What integrations have in common: which device to choose, and random states in checkpoints."""

import os
import pathlib

import torch


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


def refuse_several_processes(library: str) -> None:
    """RuntimeError where a launcher has started several processes: each would train alone."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes > 1:
        raise RuntimeError(
            f"ocl: {library} was started as {processes} processes, which ocl devices cannot train "
            "in together yet: start one, or train on the CPU"
        )


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
