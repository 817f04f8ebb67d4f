"""Building ahead: builders compile what launches wait for, beside the process that asks."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

COMPUTE = """
import os, sys, time, torch, torch_ocl
if not torch.ocl.get_device_properties().name.startswith("pthread"):
    sys.exit("not PoCL")
# Until builders have joined in: how soon they have started depends on how busy the machine is.
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    x = torch.ones(64, 64, device="ocl", dtype=dtype)
    for compute in (torch.exp, torch.tanh, torch.sum, torch.sort, lambda x: x.cumsum(0),
                    lambda x: x.softmax(0), lambda x: x @ x, lambda x: x.argmax()):
        compute(x)
    torch.ocl.synchronize()
    if torch.ocl.counters()["program_loads"] or os.environ["OCLTENSOR_BUILD_AHEAD"] == "0":
        break
print(torch.ocl.counters()["program_builds"], flush=True)
time.sleep(float(sys.argv[1]))
"""


def compute(folder: str, ahead: str, stay: float) -> subprocess.Popen:
    """A process with cold caches in `folder` that needs several programs, says how many it built
    itself, and stays a while."""
    environment = {
        **os.environ,
        "OCLTENSOR_BUILD_AHEAD": ahead,
        "OCLTENSOR_CACHE_DIR": folder + "/ours",
        "POCL_CACHE_DIR": folder + "/driver",
    }
    os.mkdir(folder + "/driver")
    return subprocess.Popen(
        [sys.executable, "-c", COMPUTE, str(stay)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def programs_in(folder: str) -> int:
    return len(list(pathlib.Path(folder, "ours").glob("*.bin")))


def builders_of(folder: str) -> list[str]:
    """The processes that work for the cache in `folder`."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"ocltensor-builder" in (process / "cmdline").read_bytes():
                if (
                    f"OCLTENSOR_CACHE_DIR={folder}/ours".encode()
                    in (process / "environ").read_bytes()
                ):
                    found.append(process.name)
        except OSError:  # ended meanwhile, or another user's
            continue
    return found


class Builders(unittest.TestCase):
    def run_one(self, ahead: str) -> tuple[int, int, list[str], list[str]]:
        """(programs built by the process, programs in the cache after a while, builders until
        then, builders after its end)."""
        with tempfile.TemporaryDirectory() as folder:
            process = compute(folder, ahead, 60)
            line = process.stdout.readline()
            if not line:
                process.wait()
                self.skipTest("only PoCL's compiler is known to need it")
            built, until = int(line), time.monotonic() + (40 if ahead == "1" else 3)
            during: list[str] = []  # at any time
            while programs_in(folder) <= built and time.monotonic() < until:
                during = during or builders_of(folder)
                time.sleep(0.05)
            cached, during = programs_in(folder), during or builders_of(folder)
            process.kill()
            process.wait()
            process.stdout.close()
            until = time.monotonic() + 30  # for the program that is being compiled
            while builders_of(folder) and time.monotonic() < until:
                time.sleep(0.2)
            return built, cached, during, builders_of(folder)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor: there are no builders")
    def test_compile_beside_the_process_and_end_with_it(self) -> None:
        built, cached, during, after = self.run_one("1")
        self.assertGreater(cached, built)
        self.assertTrue(during)
        self.assertEqual(after, [])

    def test_can_be_switched_off(self) -> None:
        built, cached, during, after = self.run_one("0")
        self.assertEqual(cached, built)
        self.assertEqual(during + after, [])


class ExpectedRequests(unittest.TestCase):
    """Builders that wait for requests."""

    def builders(self, folder: str) -> list[str]:
        """Of a process that makes one program, and stays until they have been looked for."""
        code = "import torch, torch_ocl; torch.zeros(3, device='ocl').tolist(); print(); input()"
        environment = {
            **os.environ,
            "OCLTENSOR_CACHE_DIR": folder + "/ours",
        }
        with subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            process.stdout.readline()
            until = time.monotonic() + 2
            found = builders_of(folder)
            while not found and time.monotonic() < until:
                found = builders_of(folder)
            process.communicate("\n")
        while builders_of(folder):  # they end with the process
            time.sleep(0.05)
        return found

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor: there are no builders")
    def test_without_programs_on_disk_there_are_builders_from_the_start(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(self.builders(folder))
            self.assertEqual(self.builders(folder), [])  # the program is there now


if __name__ == "__main__":
    unittest.main()
