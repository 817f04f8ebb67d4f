"""What PyTorch has for other devices alone: it works on ocl, or an error says what to do
instead."""

import multiprocessing.reduction
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
import torch.distributed as dist
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=1800
    )


class FlexAttention(unittest.TestCase):
    def test_compiled_operator_by_operator(self) -> None:
        x = torch.randn(1, 2, 8, 16)
        want = flex_attention(x, x, x)
        with self.assertWarnsRegex(UserWarning, "^ocl: torch.compile runs a graph operator by"):
            got = torch.compile(flex_attention)(*[x.to("ocl")] * 3)
        torch.testing.assert_close(got.cpu(), want, rtol=1e-5, atol=1e-5)

    def test_forward_and_backward(self) -> None:
        def causal(_, __, query, key):
            return query >= key

        def score(value, _, __, query, key):
            return value + (query - key) * 0.1

        torch.manual_seed(1)
        tensors = [torch.randn(2, 4, 33, 16) for _ in range(3)]
        distance = torch.arange(33)[:, None] - torch.arange(33)
        bias = (distance * 0.1).double().masked_fill(distance < 0, -torch.inf)
        theirs = [t.double().requires_grad_() for t in tensors]
        want = nn.functional.scaled_dot_product_attention(*theirs, attn_mask=bias)
        want.square().sum().backward()
        mask = create_block_mask(causal, None, None, 33, 33, device="ocl", BLOCK_SIZE=16)
        for call in (flex_attention, torch.compile(flex_attention, backend="aot_eager")):
            ours = [t.to("ocl").requires_grad_() for t in tensors]
            out = call(*ours, score_mod=score, block_mask=mask)
            out.square().sum().backward()
            for a, b in zip(
                [out, *(t.grad for t in ours)], [want, *(t.grad for t in theirs)], strict=True
            ):
                # Sums of 33 products of numbers up to some ten.
                torch.testing.assert_close(
                    a.detach().cpu().double(), b.detach(), rtol=1e-5, atol=1e-5
                )


class Scaled(torch.Tensor):
    """A quantised tensor, as torchao has them: two tensors, and few operators."""

    @staticmethod
    def __new__(cls, values: torch.Tensor, scale: torch.Tensor) -> "Scaled":
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, dtype=torch.float32, device=values.device
        )

    def __init__(self, values: torch.Tensor, scale: torch.Tensor) -> None:
        self.values_of, self.scale = values, scale

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["values_of", "scale"], None

    @staticmethod
    def __tensor_unflatten__(tensors, context, size, stride) -> "Scaled":
        return Scaled(tensors["values_of"], tensors["scale"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None) -> torch.Tensor:
        aten = torch.ops.aten
        if function in (aten.detach.default, aten._to_copy.default, aten.clone.default):
            kwargs = {k: v for k, v in (kwargs or {}).items() if k == "device"}
            return Scaled(*(function(t, **kwargs) for t in (args[0].values_of, args[0].scale)))
        if function is aten.t.default:
            return (args[0].values_of.float() * args[0].scale).t()
        raise NotImplementedError(f"{function} of a Scaled")


class Subclasses(unittest.TestCase):
    def test_wrappers_come_and_go(self) -> None:
        torch.manual_seed(1)
        values, x = torch.randint(-9, 9, (3, 4), dtype=torch.int8), torch.randn(2, 4)
        layer = nn.Linear(4, 3, bias=False)
        layer.weight = nn.Parameter(Scaled(values, torch.rand(3, 1)), requires_grad=False)
        want = layer(x)
        for place in ("ocl", "cpu", "ocl"):
            layer.to(place)
            self.assertEqual(layer.weight.device.type, place)
            self.assertEqual(layer.weight.values_of.device.type, place)
            torch.testing.assert_close(layer(x.to(place)).cpu(), want)


class DataParallel(unittest.TestCase):
    def test_one_device(self) -> None:
        torch.manual_seed(2)
        model = nn.Linear(3, 2)
        x = torch.randn(4, 3)
        want = model(x)
        want.sum().backward()
        grad = model.weight.grad.clone()
        model.zero_grad()
        parallel = nn.DataParallel(model.to("ocl"), device_ids=[0])
        for place in ("ocl", "cpu"):
            model.zero_grad()
            leaf = x.to(place).requires_grad_()
            out = parallel(leaf)
            out.sum().backward()
            torch.testing.assert_close(out.cpu(), want)
            torch.testing.assert_close(model.weight.grad.cpu(), grad)
            self.assertEqual(leaf.grad.device.type, place)

    def test_several_devices(self) -> None:
        x = torch.ones(4, 3, device="ocl")
        comm = nn.parallel.comm
        for call in (
            lambda: comm.scatter(x, [0, 1]),
            lambda: comm.gather([x, x]),
            lambda: comm.broadcast(x, [0, 1]),
            lambda: comm.reduce_add([x, x]),
        ):
            with self.assertRaisesRegex(NotImplementedError, "one.*device_ids"):
                call()


class Sharing(unittest.TestCase):
    def test_with_another_process(self) -> None:
        pickler, x = multiprocessing.reduction.ForkingPickler, torch.ones(3, device="ocl")
        for thing in (x, [x[1:]], nn.Parameter(x), nn.Linear(2, 2).to("ocl"), x.untyped_storage()):
            with self.assertRaisesRegex(NotImplementedError, r"tensor.cpu\(\).*to\('ocl'\)"):
                pickler.dumps(thing)
        self.assertTrue(pickler.dumps(torch.ones(3)))

    def test_forked_child_ends_in_silence(self) -> None:
        ends = ("sys.exit(0)", "sys.exit(3)", "pass")
        for end in ends:
            done = run(
                f"import os, sys, torch, torch_ocl\ntorch.ones(2, device='ocl').sum().item()\n"
                "pid = os.fork()\nif pid == 0:\n"
                f"  {end}\nelse:\n  print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
            )
            with self.subTest(end):
                self.assertEqual((done.stdout, done.stderr), ("3\n" if "3" in end else "0\n", ""))


@unittest.skipUnless(dist.is_available() and dist.is_gloo_available(), "this torch has no gloo")
class Distributed(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "store"

    def begin(self, backend) -> None:
        dist.init_process_group(
            backend, store=dist.FileStore(str(self.file), 1), rank=0, world_size=1
        )
        self.addCleanup(lambda: dist.is_initialized() and dist.destroy_process_group())

    def test_a_group_of_the_cpu_alone(self) -> None:
        self.begin("cpu:gloo")
        text = r"no backend for tensors on ocl.*init_process_group\(\)"
        x = torch.ones(4, device="ocl")
        for call in (lambda: dist.all_reduce(x), lambda: dist.all_gather([x.clone()], x)):
            with self.assertRaisesRegex(NotImplementedError, text):
                call()
        dist.all_reduce(torch.ones(2))

    def test_sparse_tensors(self) -> None:
        self.begin("gloo")
        with self.assertRaisesRegex(NotImplementedError, "must be dense"):
            dist.all_reduce(torch.eye(3).to_sparse().to("ocl"))

    def test_helpers_of_tests_are_imported(self) -> None:
        """As torchao.testing.utils does."""
        code = "import torch_ocl, torch.testing._internal.distributed._tensor.common_dtensor"
        result = run(code)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_backend_of_others_is_asked(self) -> None:
        class Done(dist.Work):
            def wait(self, *_) -> bool:
                return True

        class Adding(dist.ProcessGroup):
            def allreduce(self, tensors, *_):
                tensors[0].add_(1)
                return Done()

            def getBackendName(self) -> str:
                return "adding"

        dist.Backend.register_backend(
            "adding", lambda store, rank, size, _: Adding(rank, size), devices=["ocl"]
        )
        self.begin("cpu:gloo,ocl:adding")
        x = torch.ones(2, device="ocl")
        dist.all_reduce(x)
        self.assertEqual(x.tolist(), [2, 2])


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    unittest.main()
