"""DLPack: tensors on ocl shared within the process, copied to the CPU, refused elsewhere."""

from __future__ import annotations

import os
import unittest
import warnings

import torch
import torch.utils.dlpack
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

try:
    import numpy
except ImportError:
    numpy = None

TYPES = torch.utils.dlpack.DLDeviceType
DTYPES = (
    *(torch.bool, torch.uint8, torch.int32, torch.int64, torch.uint16),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64),
)


class Exchange(unittest.TestCase):
    def setUp(self) -> None:
        self.x = torch.arange(6.0, device="ocl")

    def test_device(self) -> None:
        kind, index = self.x.__dlpack_device__()
        self.assertEqual((kind, index), (TYPES.kDLExtDev, 0))
        self.assertEqual(torch.ones(1).__dlpack_device__(), (TYPES.kDLCPU, 0))

    def test_shares_memory(self) -> None:
        twin = torch.from_dlpack(self.x)
        self.assertEqual((twin.device, twin.data_ptr()), (self.x.device, self.x.data_ptr()))
        twin[0] = 9
        self.assertEqual(self.x[0].item(), 9)
        twin.record_stream(torch.ocl.Stream())

    def test_outlives_its_source(self) -> None:
        twin = torch.from_dlpack(torch.arange(1000.0, device="ocl") * 2)
        others = [torch.zeros(1000, device="ocl") for _ in range(8)]
        self.assertEqual(twin.sum().item(), 999000)
        self.assertEqual(len(others), 8)

    def test_types_and_strides(self) -> None:
        for dtype in DTYPES:
            x = torch.arange(24).reshape(4, 6).to(dtype)
            for view in (lambda t: t, lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[:0]):
                with self.subTest(dtype=dtype, shape=view(x).shape):
                    mine = view(x.to("ocl"))
                    twin = torch.from_dlpack(mine)
                    self.assertEqual(twin.stride(), mine.stride())
                    self.assertTrue(torch.equal(twin.cpu(), view(x)))

    def test_capsules(self) -> None:
        for arguments in ({}, {"max_version": (1, 0)}, {"dl_device": (12, 0)}, {"stream": None}):
            with self.subTest(arguments):
                twin = torch.from_dlpack(self.x.__dlpack__(**arguments))
                self.assertEqual(twin.data_ptr(), self.x.data_ptr())
        legacy = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(self.x))
        self.assertEqual(legacy.data_ptr(), self.x.data_ptr())

    def test_copies(self) -> None:
        twin = torch.from_dlpack(self.x, copy=True)
        self.assertEqual(twin.device.type, "ocl")
        self.assertNotEqual(twin.data_ptr(), self.x.data_ptr())
        self.assertTrue(torch.equal(twin, self.x))
        host = torch.from_dlpack(self.x, device="cpu")
        self.assertTrue(host.device.type == "cpu" and torch.equal(host, self.x.cpu()))
        there = torch.from_dlpack(host, device="ocl")
        self.assertTrue(there.device.type == "ocl" and torch.equal(there, self.x))
        with self.assertRaisesRegex((ValueError, BufferError), "copy"):
            self.x.__dlpack__(dl_device=(1, 0), copy=False)

    def test_refuses(self) -> None:
        others = [] if os.environ.get("OCLTENSOR_SHARED_MEMORY") == "1" else [(2, 0)]
        for device in ((TYPES.kDLOpenCL, 0), (12, 99), *others):
            with self.assertRaisesRegex(BufferError, "kDLExtDev"):
                self.x.__dlpack__(dl_device=device)
        with self.assertRaisesRegex(BufferError, "require gradient"):
            self.x.requires_grad_().__dlpack__()

    def test_subclass(self) -> None:
        class Mine(torch.Tensor):
            pass

        self.assertEqual(self.x.as_subclass(Mine).__dlpack_device__()[0], TYPES.kDLExtDev)
        self.assertEqual(torch.ones(2).as_subclass(Mine).__dlpack_device__(), (TYPES.kDLCPU, 0))

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy(self) -> None:
        with self.assertRaisesRegex((RuntimeError, BufferError), "device"):
            numpy.from_dlpack(self.x)
        if tuple(map(int, numpy.__version__.split(".")[:2])) < (2, 1):
            return  # no argument for the device
        copied = numpy.from_dlpack(self.x, device="cpu")
        self.assertEqual(copied.tolist(), [0, 1, 2, 3, 4, 5])
        self.assertTrue(torch.equal(torch.from_dlpack(copied, device="ocl"), self.x))
        with self.assertRaisesRegex((ValueError, BufferError), "cop(y|ied)"):
            numpy.from_dlpack(self.x, device="cpu", copy=False)

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy_never_copies_by_itself(self) -> None:
        zeros = numpy.zeros(6, numpy.float32)
        for name, call in {
            "asarray": lambda: numpy.asarray(self.x),
            "array": lambda: numpy.array(self.x),
            "a function": lambda: numpy.add(self.x, 1),
            "an operand": lambda: self.x + zeros,
            "numpy": lambda: self.x.numpy(),
            "a comparison": lambda: numpy.testing.assert_array_equal(self.x, zeros),
        }.items():
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of torch's __array__
                with self.assertRaisesRegex(TypeError, r"ocl:0.*Use Tensor.cpu\(\)"):
                    call()
        self.assertEqual(self.x.numpy(force=True).tolist(), [0, 1, 2, 3, 4, 5])
        self.assertEqual(numpy.asarray(self.x.cpu()).tolist(), [0, 1, 2, 3, 4, 5])

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy_values(self) -> None:
        for array in (numpy.arange(6.0), numpy.float32(3), numpy.ones((2, 3))[:, ::2]):
            for make in (torch.asarray, torch.tensor, torch.as_tensor):
                there = make(array, device="ocl")
                self.assertEqual(there.device.type, "ocl")
                self.assertEqual(there.tolist(), array.tolist())
        self.assertEqual(self.x[numpy.array([1, 3])].tolist(), [1, 3])
        self.assertEqual(self.x[numpy.int64(2)].item(), 2)
        for product in (self.x * numpy.float32(2), numpy.float32(2) * self.x):
            self.assertEqual(product.device.type, "ocl")
            self.assertEqual(product.tolist(), [0, 2, 4, 6, 8, 10])


if __name__ == "__main__":
    unittest.main()
