"""Libraries that need no change to run on ocl: timm, array_api_compat."""

import unittest

import torch
from library_case import Case, needs


@needs("timm")
class Timm(Case):
    def test_models(self) -> None:
        import torchvision_library

        torchvision_library.load()
        import timm

        for name in ("resnet10t", "vit_tiny_patch16_224", "efficientnet_b0"):
            with self.subTest(name):
                torch.manual_seed(0)
                model, x = timm.create_model(name).eval(), torch.randn(1, 3, 224, 224)
                with torch.no_grad():
                    want = model(x)
                    self.near(model.to("ocl")(x.to("ocl")), want, 1e-3 * want.abs().max().item())


@needs("array_api_compat")
class ArrayApi(Case):
    def test_namespace(self) -> None:
        import array_api_compat as compat

        x = torch.arange(6.0, device="ocl").reshape(2, 3)
        xp = compat.array_namespace(x)
        self.assertEqual(xp.__name__, "array_api_compat.torch")
        self.assertEqual(compat.device(x), torch.device("ocl", 0))
        self.assertIn(torch.device("ocl", 0), xp.__array_namespace_info__().devices())
        self.assertIn("float64", xp.__array_namespace_info__().dtypes(device=x.device))
        for made in (xp.zeros(2, device=x.device), xp.from_dlpack(x), xp.asarray(x, copy=True)):
            self.assertEqual(made.device, x.device)
        there = compat.to_device(compat.to_device(x, "cpu"), "ocl")
        self.assertTrue(torch.equal(there, x))
        for name, function in {
            "svd": lambda x: xp.linalg.svdvals(x),
            "fft": lambda x: xp.fft.fft(x).real,
            "take": lambda x: xp.take(x, xp.asarray([0, 2], device=x.device), axis=1),
            "vecdot": lambda x: xp.vecdot(x, x),
            "cumulative sum": lambda x: xp.cumulative_sum(x, axis=0, include_initial=True),
        }.items():
            with self.subTest(name):
                self.near(function(x), function(x.cpu()))


if __name__ == "__main__":
    unittest.main()
