"""safetensors: files are loaded onto ocl, by every way of naming the device."""

import unittest

import torch
from library_case import Case, applied, needs


@needs("safetensors")
class Safetensors(Case):
    def test_files(self) -> None:
        from safetensors import safe_open
        from safetensors.torch import load_file, save_file

        applied(self, "safetensors")
        file = self.folder / "a.safetensors"
        want = {
            "a": torch.arange(6.0).reshape(2, 3),
            "b": torch.ones(4, dtype=torch.bfloat16),
            "none": torch.empty(0, 3),
        }
        save_file({name: tensor.to("ocl") for name, tensor in want.items()}, file)
        for device in ("ocl", "ocl:0", torch.device("ocl"), torch.device("ocl", 0), 0):
            with self.subTest(device=device):
                got = load_file(file, device=device)
                for name, tensor in want.items():
                    self.assertEqual(got[name].device.type, "ocl")
                    self.assertTrue(torch.equal(got[name].cpu(), tensor))
                with safe_open(file, "pt", device) as opened:
                    self.assertIsInstance(opened, safe_open)
                    self.assertEqual(opened.get_tensor("a").device.type, "ocl")
                    self.assertTrue(torch.equal(opened.get_slice("a")[1:].cpu(), want["a"][1:]))
        for device in ("cpu", torch.device("cpu")):
            self.assertEqual(load_file(file, device=str(device))["a"].device.type, "cpu")
        with safe_open(file, "np") as opened:
            self.assertEqual(opened.get_tensor("a").shape, (2, 3))
        for device in ("oclx", "ocl:x"):
            with self.assertRaisesRegex(Exception, "invalid|Invalid"):
                load_file(file, device=device)


if __name__ == "__main__":
    unittest.main()
