"""Runs a script with threads and cores chosen for OpenCL devices that are CPUs.

usage: python -m torch_ocl.launch [--threads N] [--cores LIST | --node N] [--instances N] [--print]
SCRIPT [ARGUMENT...]

The counterpart of ``torch.backends.xeon.run_cpu``, for CPU drivers (PoCL, Intel's): they read the
number of threads from environment variables, once, before a program could set them.
``SCRIPT`` may be ``-m MODULE``. Devices that are GPUs are not affected.
"""

import argparse
import os
import pathlib
import subprocess
import sys

# Variables for the number of threads of a driver, or of the host; all get the same value.
_THREADS = (
    "POCL_MAX_PTHREAD_COUNT",  # PoCL up to 6
    "POCL_CPU_MAX_CU_COUNT",  # PoCL from 7 on
    "DPCPP_CPU_NUM_CUS",  # Intel's CPU runtime
    "OMP_NUM_THREADS",  # PyTorch's own kernels
)


def cores_of(text: str) -> list[int]:
    """The numbers of a list such as "0-3,8". ValueError for anything else."""
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            raise ValueError(f"the range {part!r} is empty")
        cores.extend(numbers)
    return sorted(set(cores))


def cores_of_node(node: int) -> list[int]:
    """The cores of a NUMA node. ValueError if there is no such node."""
    path = pathlib.Path(f"/sys/devices/system/node/node{node}/cpulist")
    if not path.exists():
        raise ValueError(f"this machine has no NUMA node {node}")
    return cores_of(path.read_text().strip())


def shares(cores: list[int], instances: int) -> list[list[int]]:
    """The cores, cut into equal contiguous parts, one for each instance."""
    if instances > len(cores):
        raise ValueError(f"{instances} instances need as many cores, and there are {len(cores)}")
    size = len(cores) // instances
    return [cores[i * size : (i + 1) * size] for i in range(instances)]


def environment(threads: int, cores: list[int]) -> dict[str, str]:
    """The variables for one process, without those that the user has set already."""
    values = {name: str(threads) for name in _THREADS}
    if threads <= len(cores):
        values["POCL_AFFINITY"] = "1"  # a thread keeps to its core
    return {name: os.environ.get(name, value) for name, value in values.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m torch_ocl.launch",
        usage="%(prog)s [options] SCRIPT [ARGUMENT...]",
        description=(__doc__ or "").partition("\n\n")[0],
    )
    parser.add_argument("--threads", type=int, help="of each process (default: one a core)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--cores", help="such as 0-3,8 (default: all that this process may use)")
    where.add_argument("--node", type=int, help="the cores of a NUMA node")
    parser.add_argument("--instances", type=int, default=1, help="processes, each with its share")
    parser.add_argument("--print", action="store_true", help="what would be run, and stop")
    return parser


_WITH_VALUE = ("--threads", "--cores", "--node", "--instances")


def split_command(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Options of the launcher, and the command behind them, which may begin with ``-m``."""
    at = 0
    while at < len(arguments):
        name, equals, _ = arguments[at].partition("=")
        if name in _WITH_VALUE:
            at += 1 if equals else 2
        elif name in ("--print", "-h", "--help"):
            at += 1
        else:
            break
    return arguments[:at], arguments[at:]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the first exit status that is not 0."""
    parser = _parser()
    own, script = split_command(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(own)
    if not script:
        parser.error("there is no script to run")
    if options.instances < 1 or (options.threads is not None and options.threads < 1):
        parser.error("--instances and --threads are at least 1")
    allowed = os.sched_getaffinity(0)
    try:
        cores = sorted(allowed)
        if options.cores is not None:
            cores = cores_of(options.cores)
        elif options.node is not None:
            cores = cores_of_node(options.node)
        if missing := set(cores) - allowed:
            raise ValueError(f"this process may not use the cores {sorted(missing)}")
        parts = shares(cores, options.instances)
    except ValueError as error:
        parser.error(str(error))
    processes = []
    for part in parts:
        added = environment(options.threads or len(part), part)
        command = [sys.executable, *script]
        if options.print:
            words = [f"{name}={value}" for name, value in added.items()]
            print(*words, "taskset", "-c", ",".join(map(str, part)), *command)
            continue
        processes.append(
            subprocess.Popen(
                command,
                env={**os.environ, **added},
                preexec_fn=lambda part=part: os.sched_setaffinity(0, part),
            )
        )
    return next((code for process in processes if (code := process.wait())), 0)


if __name__ == "__main__":
    sys.exit(main())
