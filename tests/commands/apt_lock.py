"""`./run` waits while another program holds apt's locks, says for which and for whom, and goes on.

usage: apt_lock.py RUN    the script; apt-get is the machine's, with folders of this test's own
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# In the order in which they are taken; a download's (archives/lock) would need a package to fetch.
LOCKS = ("lists/lock", "dpkg/lock-frontend", "dpkg/lock")
CONFIGURATION = """\
Dir::State "{0}";
Dir::State::status "{0}/dpkg/status";
Dir::Cache "{0}/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "/dev/null";
APT::Sandbox::User "";
"""


def prepare(folder: pathlib.Path) -> dict[str, str]:
    """A machine where every package is missing, and apt knows none."""
    for name in ("lists/partial", "dpkg/updates", "cache/archives/partial", "bin"):
        (folder / name).mkdir(parents=True)
    (folder / "dpkg/status").touch()
    (folder / "apt.conf").write_text(CONFIGURATION.format(folder))
    for name, text in (("dpkg-query", "exit 1"), ("sudo", '[ "$1" = -n ] || exec env "$@"')):
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    path = f"{folder}/bin:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "APT_CONFIG": str(folder / "apt.conf")}


def problems_of(run: str, folder: pathlib.Path) -> list[str]:
    environment = prepare(folder)
    locks = {name: (folder / name).open("w") for name in LOCKS}
    for lock in locks.values():
        fcntl.lockf(lock, fcntl.LOCK_EX)
    waited, told = [], []
    with subprocess.Popen(
        [run, "sanitize", "oclgrind"], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            told.append(line)
            if "Waiting for another program" not in line:
                continue
            name = next(n for n in LOCKS if f"{folder}/{n}. " in line)
            waited.append(name)
            fcntl.lockf(locks[name], fcntl.LOCK_UN)
    text = "".join(told)
    problems = []
    if waited != list(LOCKS):
        problems.append(f"waited for {waited}, not for each of {LOCKS} once")
    if text.count(f"held by process {os.getpid()} (python") != len(LOCKS):
        problems.append("does not say who holds them")
    # It went on to what ends it here.
    if process.returncode != 1 or "Unable to locate package cmake" not in text:
        problems.append(f"did not go on: {process.returncode}")
    return [*problems, text] if problems else []


def main() -> int:
    if shutil.which("apt-get") is None:
        print("SKIPPED: there is no apt-get")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        problems = problems_of(sys.argv[1], pathlib.Path(folder))
    print("\n".join(problems) or f"waited for {len(LOCKS)} locks")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
