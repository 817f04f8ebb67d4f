"""Python programs in processes of their own that need not import torch again.

They are forks of a process that has imported torch and nothing else: neither torch_ocl nor the
plugin. Where the import of torch is what is tested, subprocess is the way.
"""

import atexit
import ctypes
import functools
import json
import os
import subprocess
import sys
import tempfile
import traceback


def run(
    source: str, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """As subprocess.run([sys.executable, "-c", source, *arguments], env=env) with captured text."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        order = {
            "source": source,
            "arguments": arguments,
            "env": dict(os.environ if env is None else env),
            "outputs": [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)],
        }
        server = _server()
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(source, status, out.read(), err.read())


@functools.cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, __file__],
        env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)  # it ends with its input
    return server


def _serve() -> None:
    import torch  # noqa: F401, PLC0415  what the forks share

    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(order)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(order: dict) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in enumerate(order["outputs"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(order["env"])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    del sys.path[0]  # this folder
    sys.path[:0] = ["", *(path for path in paths if path not in sys.path)]
    sys.argv = ["-c", *order["arguments"]]
    status = 0
    try:
        exec(compile(order["source"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code or 0
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(status)  # destructors of libraries run, as at any end


if __name__ == "__main__":
    _serve()
