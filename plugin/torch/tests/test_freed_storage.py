"""Tensors whose storage was freed (``untyped_storage().resize_(0)``, as FSDP does between steps):
each use is an error that says so, and the process and the device go on."""

import itertools
import os
import re
import sys
import unittest
import warnings

import torch
import torch.nn.functional as F
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "opinfo"))
from samples import move

WHY = (
    "has no memory|storage of .* bytes|not an address of device memory|beyond the allocation"
    "|out of bounds for storage of size"  # PyTorch itself, where it makes a view
)


def freed(*sizes, dtype=torch.float32, to=0):
    """A tensor of a storage that holds `to` bytes."""
    tensor = torch.rand(*sizes, device="ocl").mul_(4).to(dtype)
    tensor.untyped_storage().resize_(to)
    return tensor


def x(*sizes):
    return torch.rand(*sizes, device="ocl")


def sparse(indices, values, sizes):
    return torch.sparse_coo_tensor(indices, values, sizes, check_invariants=False)


def with_foreach(call):
    return lambda t: call([t, t])


KERNEL = "__kernel void twice(__global float* x) { x[get_global_id(0)] *= 2; }"

# Each takes a tensor of 3 x 4 whose memory is gone.
USES = {
    "pointwise": lambda t: t + 1,
    "pointwise of two": lambda t: torch.add(x(3, 4), t),
    "broadcast": lambda t: x(2, 3, 4) * t,
    "unary": torch.exp,
    "in place": lambda t: t.add_(1),
    "in place, as other": lambda t: x(3, 4).add_(t),
    "out": lambda t: torch.add(x(3, 4), 1, out=t),
    "where": lambda t: torch.where(x(3, 4) > 0.5, t, t),
    "fill": lambda t: t.fill_(1),
    "zero": lambda t: t.zero_(),
    "conversion": lambda t: t.to(torch.float64),
    "sum": torch.sum,
    "amax": lambda t: t.amax(1),
    "norm": lambda t: t.norm(),
    "cumsum": lambda t: t.cumsum(0),
    "sort": lambda t: t.sort(),
    "softmax": lambda t: t.softmax(1),
    "layer norm": lambda t: F.layer_norm(t, (4,)),
    "product": lambda t: t @ x(4, 3),
    "linear": lambda t: F.linear(x(2, 4), t),
    "bmm": lambda t: torch.bmm(t.unsqueeze(0), x(1, 4, 3)),
    "convolution": lambda t: F.conv2d(t.view(1, 1, 3, 4), x(1, 1, 2, 2)),
    "weight of a convolution": lambda t: F.conv2d(x(1, 1, 5, 5), t.view(1, 1, 3, 4)),
    "pool": lambda t: F.max_pool2d(t.view(1, 1, 3, 4), 2),
    "upsample": lambda t: F.interpolate(t.view(1, 1, 3, 4), scale_factor=2),
    "attention": lambda t: F.scaled_dot_product_attention(t[None], x(1, 3, 4), x(1, 3, 4)),
    "embedding": lambda t: F.embedding(torch.tensor([1, 2], device="ocl"), t),
    "index_select": lambda t: t.index_select(0, torch.tensor([1, 2], device="ocl")),
    "gather": lambda t: t.gather(1, torch.zeros(3, 1, dtype=torch.int64, device="ocl")),
    "brackets": lambda t: t[torch.tensor([0, 1], device="ocl")],
    "writing by brackets": lambda t: t.__setitem__(torch.tensor([0, 1], device="ocl"), 1.0),
    "nonzero": torch.nonzero,
    "cat": lambda t: torch.cat([x(3, 4), t]),
    "stack": lambda t: torch.stack([t, x(3, 4)]),
    "clone": torch.clone,
    "contiguous": lambda t: t.t().contiguous(),
    "copy from a tensor": lambda t: t.copy_(x(3, 4)),
    "copy to a tensor": lambda t: x(3, 4).copy_(t),
    "copy from the CPU": lambda t: t.copy_(torch.rand(3, 4)),
    "copy to the CPU": lambda t: t.cpu(),
    "copy of a row": lambda t: t[1].cpu(),
    "item": lambda t: t[1, 2].item(),
    "item of the first": lambda t: t[0, 0].item(),
    "text": repr,
    "random": lambda t: t.normal_(),
    "dropout": lambda t: F.dropout(t, 0.5),
    "fft": torch.fft.rfft,
    "inverse": lambda t: torch.linalg.inv(t[:, :3]),
    "cholesky": lambda t: torch.linalg.cholesky(t[:, :3]),
    "svd": torch.linalg.svd,
    "lists": with_foreach(lambda ts: torch._foreach_add(ts, 1)),
    "lists in place": with_foreach(lambda ts: torch._foreach_mul_(ts, 2)),
    "a list beside whole ones": lambda t: torch._foreach_add([x(3, 4), x(3, 4)], [x(3, 4), t]),
    "clipping": lambda t: torch.nn.utils.get_total_norm([x(2), t]),
    "cross entropy": lambda t: F.cross_entropy(t, torch.tensor([0, 1, 2], device="ocl")),
    "custom kernel": lambda t: torch.ocl.compile_kernel(KERNEL).twice(t),
    "sparse values": lambda t: sparse(torch.tensor([[0, 1, 2]]).to("ocl"), t, (3, 4)).to_dense(),
    "sparse product": lambda t: sparse(torch.tensor([[0, 1], [1, 2]]).to("ocl"), x(2), (2, 3)) @ t,
    "gradient": lambda t: x(3, 4).requires_grad_().mul(x(3, 4)).backward(t),
    "optimizer": lambda t: step(t),
    "equal": lambda t: torch.equal(t, x(3, 4)),
    "allclose": lambda t: torch.allclose(t, x(3, 4)),
}


def step(tensor):
    parameter = torch.nn.Parameter(tensor)
    parameter.grad = x(3, 4)
    torch.optim.AdamW([parameter], fused=True).step()


class Freed(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def check_goes_on(self):
        torch.ocl.synchronize()
        value = torch.arange(6.0, device="ocl").view(2, 3)
        self.assertEqual((value @ value.t() + 1).tolist(), [[6.0, 15.0], [15.0, 51.0]])

    def check_refused(self, use, tensor):
        with self.assertRaisesRegex((RuntimeError, ValueError), WHY):
            use(tensor)
            torch.ocl.synchronize()
        self.check_goes_on()

    def test_every_use_is_an_error(self):
        for name, use in USES.items():
            with self.subTest(name):
                self.check_refused(use, freed(3, 4))

    def test_after_the_same_call_with_memory(self):
        for name, use in USES.items():  # what a call is remembered by is not its memory
            if name in ("cholesky", "equal"):  # the first needs a particular matrix
                continue
            with self.subTest(name):
                for _ in range(2):
                    use(x(3, 4))
                self.check_refused(use, freed(3, 4))

    def test_a_part_of_the_storage(self):
        for name, use in USES.items():
            with self.subTest(name):
                if name in ("copy of a row", "item", "item of the first"):
                    continue  # these lie in what is left, or need not
                self.check_refused(use, freed(3, 4, to=24))
        self.assertEqual(freed(3, 4, to=16)[0].cpu().shape, (4,))
        self.check_refused(lambda t: t[1, 2].item(), freed(3, 4, to=24))
        self.check_refused(lambda t: t[1].cpu(), freed(3, 4, to=24))

    def test_views_of_it(self):
        for view in (lambda t: t[1:], lambda t: t.t(), lambda t: t[:, 2:], lambda t: t[2, 3]):
            whole = x(3, 4)
            part = view(whole)
            whole.untyped_storage().resize_(0)
            for use in (lambda t: t + 1, torch.Tensor.cpu, torch.Tensor.zero_, torch.clone):
                self.check_refused(use, part)

    def test_types(self):
        types = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16)
        for dtype in (*types, torch.complex64):
            with self.subTest(dtype):
                self.check_refused(lambda t: t == t, freed(3, 4, dtype=dtype))
                self.check_refused(torch.clone, freed(3, 4, dtype=dtype))

    def test_no_elements_need_no_memory(self):
        tensor = freed(0, 4)
        self.assertEqual((tensor + 1).shape, (0, 4))
        self.assertEqual(tensor.sum().item(), 0)
        self.assertEqual(torch.cat([tensor, x(2, 4)]).shape, (2, 4))

    def test_memory_that_comes_back(self):
        tensor = x(3, 4)
        bytes_ = tensor.untyped_storage().nbytes()
        tensor.untyped_storage().resize_(0)
        self.check_refused(lambda t: t + 1, tensor)
        tensor.untyped_storage().resize_(bytes_)
        tensor.copy_(torch.arange(12.0).view(3, 4))
        self.assertEqual((tensor + 1).sum().item(), 78)

    def test_in_a_recording(self):
        tensor, whole = freed(3, 4), torch.ones(3, 4, device="ocl")
        graph = torch.ocl.OCLGraph()
        with self.assertRaisesRegex(RuntimeError, WHY), torch.ocl.graph(graph):
            _ = tensor + 1
        with torch.ocl.graph(graph):
            result = whole + 1
        graph.replay()
        self.assertEqual(result.sum().item(), 24)
        self.check_goes_on()

    def test_a_gradient_whose_saved_tensor_was_freed(self):
        weight = x(4, 4).requires_grad_()
        hidden = x(3, 4)
        loss = (hidden @ weight).sum()
        hidden.untyped_storage().resize_(0)
        with self.assertRaisesRegex(RuntimeError, WHY):
            loss.backward()
        self.check_goes_on()


# Entries of op_db that read no element of their first tensor: they look at its shape alone.
READ_NOTHING = {"isreal", "fill", "new_empty", "new_empty_strided", "new_full", "new_ones"}
READ_NOTHING |= {"new_zeros", *(f"{name}_like" for name in ("empty", "full", "ones", "rand"))}
READ_NOTHING |= {"randint_like", "randn_like", "zeros_like"}


def sample_of(op):
    """The entry's first sample whose first tensor has elements, on ocl; None: there is none."""
    dtypes = (torch.float32, torch.complex64, torch.int64)
    dtype = next(filter(op.dtypes.__contains__, dtypes), None)
    samples = op.sample_inputs("cpu", dtype) if dtype else ()
    for sample in itertools.islice(samples, 20):
        first = next(iter(tree_leaves(sample.input)), None)
        if isinstance(first, torch.Tensor) and first.layout == torch.strided and first.numel():
            return tuple(move(v, "ocl") for v in (sample.input, sample.args, sample.kwargs))
    return None


class Database(unittest.TestCase):
    """The entries of op_db, each with the memory of its first tensor gone."""

    def outcome(self, op, first, *, args, kwargs):
        """What is wrong with it; None: it was refused, or reads nothing."""
        tensor = tree_leaves(first)[0]
        tensor.untyped_storage().resize_(0)
        try:
            with torch.no_grad():
                results = tree_leaves(op(first, *args, **kwargs))
                torch.ocl.synchronize()
        except (RuntimeError, ValueError) as error:
            return None if re.search(WHY, str(error)) else str(error)
        shared = tensor.untyped_storage()._cdata
        views = all(r.untyped_storage()._cdata == shared or r.numel() == 0 for r in results)
        return None if views or op.name in READ_NOTHING else "it computed with no memory"

    def test_all(self):
        tried, wrong = 0, {}
        for op in op_db:
            # Jiterator is CUDA's; tensor_split wants its first tensor on the CPU.
            if op.name.startswith("jiterator") or op.name == "tensor_split":
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sample = sample_of(op)
                if sample is None:
                    continue
                tried += 1
                why = self.outcome(op, sample[0], args=sample[1], kwargs=sample[2])
            if why is not None:
                wrong[op.formatted_name] = why
        self.assertEqual(wrong, {})
        self.assertGreater(tried, 600)


if __name__ == "__main__":
    unittest.main()
