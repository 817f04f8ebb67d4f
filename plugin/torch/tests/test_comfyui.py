"""ComfyUI's node folder: against a stand-in for the module that it changes, and with a real server
where a checkout of ComfyUI is in .venv/ComfyUI, with its packages in .venv/ComfyUI/.venv, whose
page is used where chromium is."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
EXAMPLE = TESTS.parent / "examples/comfyui"
SCRIPT = EXAMPLE / "ocl_device/prestartup_script.py"
COMFYUI = pathlib.Path(sys.prefix) / "ComfyUI"
PYTHON = COMFYUI / ".venv/bin/python"

# What comfy/cli_args.py and comfy/model_management.py have of the names that are used and changed.
ARGS = """
import types
args = types.SimpleNamespace(
    cpu=False, directml=None, lowvram=False, novram=False, highvram=False, gpu_only=False,
    force_fp16=False, force_fp32=False, use_split_cross_attention=False,
    use_quad_cross_attention=False)
"""
MANAGEMENT = """
import enum
import torch
from comfy.cli_args import args
VRAMState = enum.Enum("VRAMState", "DISABLED NO_VRAM LOW_VRAM NORMAL_VRAM HIGH_VRAM SHARED")
CPUState = enum.Enum("CPUState", "GPU CPU MPS")
cpu_state = CPUState.CPU if args.cpu else CPUState.GPU
vram_state, total_vram = VRAMState.DISABLED, 1
ENABLE_PYTORCH_ATTENTION = False
def get_torch_device():
    return torch.device("cpu" if cpu_state == CPUState.CPU else torch.cuda.current_device())
def get_torch_device_name(device): return device.type
def text_encoder_device(): return torch.device("cpu")
def get_total_memory(dev=None, torch_total_too=False): return (7, 7) if torch_total_too else 7
def get_free_memory(dev=None, torch_free_too=False): return (5, 5) if torch_free_too else 5
def should_use_fp16(device=None, model_params=0, prioritize_performance=True, manual_cast=False):
    return "asked"
should_use_bf16 = should_use_fp16
def soft_empty_cache(force=False): raise AssertionError
def is_nvidia(): raise AssertionError
def is_amd(): raise AssertionError
def is_directml_enabled(): raise AssertionError
def pytorch_attention_flash_attention(): raise AssertionError
get_torch_device()
"""


class Management(unittest.TestCase):
    def imported(self, code: str, management: str = MANAGEMENT, **environment: str) -> str:
        """What ``code`` prints after the node folder's script and the import of the stand-in."""
        with tempfile.TemporaryDirectory() as name:
            package = pathlib.Path(name) / "comfy"
            package.mkdir()
            (package / "__init__.py").touch()
            (package / "cli_args.py").write_text(ARGS)
            (package / "model_management.py").write_text(management)
            start = f"""
                import logging, runpy, sys
                logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)
                runpy.run_path({str(SCRIPT)!r})
                assert "torch" not in sys.modules
                import comfy.model_management as m, torch
                from comfy.cli_args import args
            """
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(code)],
                env=os.environ | environment,
                cwd=name,
                capture_output=True,
                text=True,
                timeout=600,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_ocl_is_used(self) -> None:
        out = self.imported("""
            device = m.get_torch_device()
            assert device == torch.device("ocl", 0) and not args.cpu, device
            assert m.get_torch_device_name(device).startswith("ocl:0 ")
            assert m.get_torch_device_name(torch.device("cpu")) == "cpu"
            properties = torch.ocl.get_device_properties(0)
            unified = properties.has_unified_memory
            assert m.vram_state == (m.VRAMState.SHARED if unified else m.VRAMState.NORMAL_VRAM)
            assert m.cpu_state == m.CPUState.GPU and m.text_encoder_device() == device
            total = properties.total_memory
            assert m.total_vram == total / 2**20 and m.get_total_memory() == total
            kept = torch.ones(1000, device="ocl")
            assert m.get_total_memory(device, True) == (total, torch.ocl.memory_reserved())
            dropped = torch.ones(5 * 2**20, device="ocl")
            del dropped
            free, cached = m.get_free_memory(device, True)
            assert cached >= 20 * 2**20 and cached < free <= total + cached, (free, cached)
            m.soft_empty_cache()
            assert m.get_free_memory(device, True)[1] < cached
            cpu = torch.device("cpu")
            assert m.get_total_memory(cpu, True) == (7, 7) and m.get_free_memory(cpu) == 5
            assert m.should_use_fp16(cpu) == "asked"
            gpu = properties.kind != "cpu"
            assert m.should_use_fp16() == m.should_use_bf16(device, model_params=3) == gpu
            assert m.is_directml_enabled() != properties.has_fp64
            assert m.ENABLE_PYTORCH_ATTENTION and m.pytorch_attention_flash_attention()
            assert not m.is_nvidia() and not m.is_amd()
        """)
        self.assertIn("ocl: using ocl:0 ", out)

    def test_arguments(self) -> None:
        cases = {
            "args.lowvram = True": "m.vram_state == m.VRAMState.LOW_VRAM and "
            "m.text_encoder_device().type == 'cpu'",
            "args.novram = True": "m.vram_state == m.VRAMState.NO_VRAM",
            "args.gpu_only = True": "m.vram_state == m.VRAMState.HIGH_VRAM",
            "args.force_fp16 = True": "m.should_use_fp16()",
            "args.force_fp32 = True": "not m.should_use_fp16() and not m.should_use_bf16()",
            "args.use_split_cross_attention = True": "not m.ENABLE_PYTORCH_ATTENTION",
            "args.cpu = True": "m.get_torch_device().type == 'cpu' and args.cpu",
        }
        out = self.imported(f"""
            import copy, importlib
            plain = copy.copy(args)
            for change, expected in {cases!r}.items():
                vars(args).update(vars(plain))
                exec(change)
                del sys.modules["comfy.model_management"]
                runpy.run_path({str(SCRIPT)!r})
                m = importlib.import_module("comfy.model_management")
                assert eval(expected), change
        """)
        self.assertIn("another device was asked for", out)

    def test_without_float64(self) -> None:
        self.imported("assert m.is_directml_enabled()", OCLTENSOR_FLOAT64="0")

    def test_no_device(self) -> None:
        management = MANAGEMENT.replace("\nget_torch_device()", "")  # it would ask for CUDA
        out = self.imported("m.get_free_memory()", management, OCLTENSOR_DEVICES="none such")
        self.assertRegex(out, "ocl: not used: no OpenCL device was found")

    def test_an_unknown_comfyui_is_left_alone(self) -> None:
        management = MANAGEMENT.replace("def text_encoder_device", "def another_name")
        out = self.imported("assert m.get_torch_device().type == 'cpu'", management)
        self.assertIn("an unknown ComfyUI is left as it is", out)


@unittest.skipUnless(
    PYTHON.exists(), f"SKIPPED: no checkout of ComfyUI in {COMFYUI}, with its packages"
)
class Server(unittest.TestCase):
    def test_a_workflow(self) -> None:
        command = [PYTHON, EXAMPLE / "run_workflow.py", COMFYUI, "--steps", "2"]
        command += ["--launcher", TESTS / "comfyui_launcher.py"]
        with tempfile.TemporaryDirectory() as name:
            picture = pathlib.Path(name) / "page.png"
            if shutil.which("chromium"):
                command += ["--screenshot", picture]
            done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            if "--screenshot" in command:
                self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    unittest.main()
