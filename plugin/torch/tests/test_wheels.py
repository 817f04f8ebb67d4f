"""What `./run wheels` decides without compiling: what it builds, the torches that a wheel asks for,
and the systems that it may be tagged for."""

import argparse
import pathlib
import platform
import sys
import tempfile
import unittest

from pip._vendor.packaging.requirements import Requirement

WHEELS = pathlib.Path(__file__).resolve().parents[1] / "wheels"
sys.path.insert(0, str(WHEELS))

import pack  # noqa: E402
import wheels  # noqa: E402


class Requirements(unittest.TestCase):
    """pip must not put a wheel beside a torch that it has no module for."""

    def taken(self, *built: str) -> list[str]:
        with tempfile.TemporaryDirectory() as name:
            package = pathlib.Path(name) / "torch_ocl"
            package.mkdir()
            for torch in built:
                for python in ("311", "312"):
                    (package / f"_C_torch{torch}.cpython-{python}-aarch64-linux-gnu.so").touch()
            torch = Requirement(pack.torch_requirement(package.parent)).specifier
        releases = (
            "2.9.1",
            "2.10.0",
            "2.11.0",
            "2.12.1",
            "2.13.0+cpu",
            "2.14.0",
            "2.15.2",
            "2.16.0",
        )
        return [r for r in releases if r in torch]

    def test_one(self) -> None:
        self.assertEqual(self.taken("213"), ["2.13.0+cpu"])
        self.assertEqual(self.taken("29"), ["2.9.1"])

    def test_neighbours(self) -> None:
        self.assertEqual(self.taken("211", "212", "213"), ["2.11.0", "2.12.1", "2.13.0+cpu"])
        self.assertEqual(self.taken("29", "210"), ["2.9.1", "2.10.0"])

    def test_gaps(self) -> None:
        self.assertEqual(self.taken("211", "213", "215"), ["2.11.0", "2.13.0+cpu", "2.15.2"])

    def test_none(self) -> None:
        with self.assertRaisesRegex(SystemExit, "no module"):
            self.taken()


class Chosen(unittest.TestCase):
    def chosen(self, torch: str | None = None, arch: str | None = None) -> dict[str, list[str]]:
        return wheels.chosen(argparse.Namespace(torch=torch, arch=arch))

    def test_everything(self) -> None:
        self.assertEqual(
            self.chosen(),
            {"x86_64": ["2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"], "aarch64": ["2.13.0"]},
        )

    def test_a_torch_is_for_this_machine(self) -> None:
        self.assertEqual(
            self.chosen(torch="2.11.0,2.14.0"), {platform.machine(): ["2.11.0", "2.14.0"]}
        )

    def test_machines(self) -> None:
        self.assertEqual(self.chosen(arch="aarch64"), {"aarch64": ["2.13.0"]})
        self.assertEqual(
            self.chosen(torch="2.15.0", arch="aarch64,x86_64"),
            {"aarch64": ["2.15.0"], "x86_64": ["2.15.0"]},
        )
        with self.assertRaisesRegex(SystemExit, "not for riscv64"):
            self.chosen(arch="riscv64")

    def test_summary(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            file = pathlib.Path(name) / "torch_ocl-0.2.0-cp311-cp311-manylinux_2_31_x86_64.whl"
            file.write_bytes(bytes(3 << 19))
            made = wheels.Wheel(file, ["2.11.0", "2.15.0"], ["311"], 61.4)
            head, row = wheels.summary([made]).splitlines()
        self.assertEqual(head.split(), ["file", "size", "torch", "Python", "runs", "with", "time"])
        fields = [file.name, "1.5", "MiB", "2.11.0", "2.15.0", "311", "manylinux_2_31_x86_64"]
        self.assertEqual(row.split(), [*fields, "61", "s"])


class Tags(unittest.TestCase):
    def test_older_systems(self) -> None:
        for tag in ("manylinux_2_31_aarch64", "manylinux_2_28_x86_64"):
            wheels.check_tag(pathlib.Path(f"torch_ocl-0.2.0-cp311-cp311-{tag}.whl"))

    def test_later_systems(self) -> None:
        """A library that was linked with the system's own C library, or no manylinux at all."""
        for tag in ("manylinux_2_35_x86_64", "linux_x86_64"):
            with self.assertRaisesRegex(SystemExit, "does not run with glibc 2.31"):
                wheels.check_tag(pathlib.Path(f"torch_ocl-0.2.0-cp311-cp311-{tag}.whl"))


if __name__ == "__main__":
    unittest.main()
