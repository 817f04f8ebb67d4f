"""A compiler that ends its process with each program of one algorithm: a training step of ResNet-50
ends right, by another algorithm, with one message."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

# A step with the kernels of GPUs, beside the CPU's. Of a quarter of the channels, or PoCL takes
# minutes; the layers are ResNet-50's.
STEP = """
import sys, torch, torch_ocl
from torch import nn

class Bottleneck(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        wide = 4 * o
        self.body = nn.Sequential(
            nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
            nn.Conv2d(o, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
            nn.Conv2d(o, wide, 1, bias=False), nn.BatchNorm2d(wide))
        self.down = nn.Identity() if i == wide and stride == 1 else nn.Sequential(
            nn.Conv2d(i, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x):
        return torch.relu(self.body(x) + self.down(x))

def resnet50(width):
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    i = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        o = width << stage
        for block in range(blocks):
            layers.append(Bottleneck(i, o, 2 if block == 0 and stage else 1))
            i = 4 * o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 10))

def step(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return [loss, *(p.grad for p in model.parameters()), *model.parameters()]

torch.manual_seed(0)
model = resnet50(16)
on_device = resnet50(16)
on_device.load_state_dict(model.state_dict())
x, y = torch.randn(4, 3, 64, 64), torch.randint(10, (4,))
found = [t.detach().cpu() for t in step(on_device.to("ocl"), x.to("ocl"), y.to("ocl"))]
wanted = [t.detach() for t in step(model, x, y)]
# Relative to the tensor. Whether a ReLU lets a number near zero pass decides of thousandths of the
# gradients before it; what a wrong convolution gives is as far from right as the result is large.
worst = max(((a - b).norm() / (b.norm() + 1e-6)).item() for a, b in zip(found, wanted))
print(f"loss {abs(found[0] - wanted[0]).item():.1e} worst {worst:.1e}")
assert abs(found[0] - wanted[0]) < 1e-4 and worst < 0.05, "wrong"
print("right", torch.ocl.counters()["program_builds"], "built here")
"""
# Gradients of a convolution that share what is prepared of a map (of Hopper's size), in float32.
GRADIENTS = """
import torch, torch_ocl
torch.manual_seed(0)
x, w, g = torch.randn(16, 64, 28, 28), torch.randn(64, 64, 3, 3), torch.randn(16, 64, 28, 28)
def gradients(*tensors):
    x, w, g = (t.requires_grad_() for t in tensors)
    return torch.autograd.grad(torch.nn.functional.conv2d(x, w, padding=1), (x, w), g)
wanted = gradients(x.double(), w.double(), g.double())
for call in range(2):
    found = gradients(x.detach().to("ocl"), w.detach().to("ocl"), g.detach().to("ocl"))
    for a, b in zip(found, wanted):
        # Sums of 576 and 12,544 products in float32.
        error = (a.cpu() - b).abs().max() / b.abs().max()
        assert error < 1e-5, (call, error)
print("right")
"""
LEFT_OUT = "is left out, another algorithm runs"


class CompilerCrash(unittest.TestCase):
    def step(self, folder: str, crash: str) -> subprocess.CompletedProcess:
        import torch_ocl

        layer = pathlib.Path(torch_ocl.__file__).parents[2] / "lib/libpoor_driver_layer.so"
        if not layer.exists():
            self.skipTest(f"no {layer.name}")
        return subprocess.run(
            [sys.executable, "-c", STEP],
            capture_output=True,
            text=True,
            env=os.environ
            | {
                "OPENCL_LAYERS": str(layer),
                "CRASH_ON": crash,
                "OCLTENSOR_CAPS": "trusted_compiler=0",
                "OCLTENSOR_KERNEL_STYLE": "gpu",
                "OCLTENSOR_DISABLED_PROVIDERS": "nvidia_hopper,nvidia_mma",
                "OCLTENSOR_BUILD_AHEAD": "1",
                "OCLTENSOR_CACHE_DIR": folder + "/ours",
                "POCL_CACHE_DIR": folder,
                # So that one compilation of many takes a third of the time.
                "POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable",
            },
        )

    def test_a_step_ends_right_with_one_message(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run = self.step(folder, "void implicit(")
            said = run.stdout + run.stderr
            self.assertEqual(run.returncode, 0, said)
            self.assertIn("right 0 built here", run.stdout, said)
            self.assertEqual(said.count(LEFT_OUT), 1, said)
            self.assertIn("conv/implicit.cl is not compiled", said)
            self.assertTrue(os.listdir(folder + "/ours/building"), said)

    def test_gradients_are_right_where_builders_are_first(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            careful = {
                "OCLTENSOR_CAPS": "trusted_compiler=0",
                "OCLTENSOR_CACHE_DIR": folder,
                "OCLTENSOR_BUILD_AHEAD": "1",
            }
            done = subprocess.run(
                [sys.executable, "-c", GRADIENTS],
                capture_output=True,
                text=True,
                env=os.environ | careful,
            )
            self.assertEqual(done.stdout, "right\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
