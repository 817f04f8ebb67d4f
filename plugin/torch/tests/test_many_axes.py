"""Tensors of up to 64 axes, as PyTorch has them: simulations of quantum circuits and networks of
tensors have an axis of two for each qubit. Axes that lie one behind the other are one to a kernel;
what is tested here is those that do not, and that no operator declines a tensor for its rank."""

import math
import unittest

import torch
import torch.nn.functional as F
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle

TWOS = 12  # axes of two in any order: 4096 elements, of which kernels take 8 axes at once


def shuffled(rank, seed=0, dtype=torch.float32, twos=TWOS):
    """`rank` axes, of which `twos` are of two and the others of one, in no order of memory."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [2] * twos + [1] * (rank - twos)
    values = torch.randn(2**twos, generator=generator).mul(8).to(dtype)
    if dtype.is_complex:
        values = torch.complex(values.real, torch.randn(2**twos, generator=generator))
    order = torch.randperm(rank, generator=generator).tolist()
    return values.view(sizes).permute(order)


def moved(value):
    """The same on ocl, with the same strides."""
    if not isinstance(value, torch.Tensor):
        return value
    flat = value.as_strided((value.numel(),), (1,)).to("ocl")
    return flat.as_strided(value.shape, value.stride())


def axis_of_two(tensor, last=False):
    axes = [d for d in range(tensor.dim()) if tensor.size(d) == 2]
    return axes[-1] if last else axes[0]


def every_second(tensor):
    return [d for d in range(tensor.dim()) if tensor.size(d) == 2][::2]


def index_for(tensor, dim):
    """An index with the tensor's shape into its axis `dim`, as int64."""
    ones = torch.arange(tensor.numel()).mul(7).remainder(tensor.size(dim))
    return ones.view(tensor.shape)


def gathered(t):
    dim = axis_of_two(t)
    return t.gather(dim, index_for(t, dim).to(t.device))


def scattered(t):
    dim = axis_of_two(t, last=True)
    return torch.zeros_like(t).scatter_add(dim, index_for(t, dim).to(t.device), t)


def put(t):
    index = torch.tensor([1, 0], device=t.device)
    where = [slice(None)] * t.dim()
    where[axis_of_two(t)] = index
    other = t.clone()
    other[tuple(where)] = t.mul(2)
    return other


def taken(t):
    where = [slice(None)] * t.dim()
    where[axis_of_two(t)] = torch.tensor([1, 0, 1], device=t.device)
    where[axis_of_two(t, last=True)] = torch.tensor([0, 0, 1], device=t.device)
    return t[tuple(where)]


def gate(t):
    """A gate of two qubits on a state, as simulators apply it."""
    matrix = torch.arange(16.0, device=t.device).view(2, 2, 2, 2).to(t.dtype)
    first, last = axis_of_two(t), axis_of_two(t, last=True)
    return torch.tensordot(matrix, t, dims=([2, 3], [last, first]))


CASES = {
    "sum of two orders": lambda t: t + t.transpose(axis_of_two(t), axis_of_two(t, last=True)),
    "broadcast": lambda t: t * t.select(axis_of_two(t), 0).unsqueeze(axis_of_two(t)),
    "in place": lambda t: t.clone().mul_(t.flip(axis_of_two(t))),
    "where": lambda t: torch.where(t.real > 0, t, -t),
    "copy": torch.Tensor.contiguous,
    "conversion": lambda t: t.to(torch.complex64),
    "flip": lambda t: t.flip(every_second(t)),
    "roll": lambda t: t.roll([1] * 3, every_second(t)[:3]),
    "cat": lambda t: torch.cat([t, t], axis_of_two(t)),
    "sum": torch.sum,
    "sum of every second": lambda t: t.sum(every_second(t)),
    "sum of the others": lambda t: t.sum([d for d in range(t.dim()) if d not in every_second(t)]),
    "sum with axes kept": lambda t: t.sum(every_second(t), keepdim=True),
    "mean": lambda t: t.mean(every_second(t)),
    "variance": lambda t: torch.var(t, every_second(t)),
    "variance and mean": lambda t: torch.var_mean(t, every_second(t), keepdim=True),
    "norm": lambda t: torch.linalg.vector_norm(t, 2, every_second(t)),
    "product": lambda t: t.prod(axis_of_two(t)),
    "cumsum": lambda t: t.cumsum(axis_of_two(t)),
    "any": lambda t: (t.real > 9).any(axis_of_two(t)),
    "count": lambda t: t.real.gt(1).count_nonzero(every_second(t)),
    "gather": gathered,
    "scatter": scattered,
    "index_select": lambda t: t.index_select(
        axis_of_two(t), torch.tensor([1, 1, 0], device=t.device)
    ),
    "index_add": lambda t: t.clone().index_add_(
        axis_of_two(t), torch.tensor([1, 1], device=t.device), t
    ),
    "brackets": taken,
    "writing by brackets": put,
    "mask": lambda t: t[t.real > 0],
    "writing by a mask": lambda t: t.clone().masked_fill_(t.real > 0, 3),
    "masked_select": lambda t: t.masked_select(t.real > 0),
    "nonzero": lambda t: (t.real > 12).nonzero(),
    "gate": gate,
    "reshape": lambda t: t.reshape(-1, 2),
    "lists": lambda t: torch._foreach_add([t, t], [t, t.clone()]),
    "repeat": lambda t: t.repeat([2] + [1] * (t.dim() - 1)),
    "difference": lambda t: t.diff(dim=axis_of_two(t)),
}
REAL = {
    "amax": lambda t: t.amax(every_second(t)),
    "aminmax": lambda t: t.aminmax(dim=axis_of_two(t)),
    "argmax": lambda t: t.argmax(axis_of_two(t)),
    "max": lambda t: t.max(axis_of_two(t)),
    "logsumexp": lambda t: t.logsumexp(every_second(t)),
    "softmax": lambda t: t.softmax(axis_of_two(t)),
    "sort": lambda t: t.sort(axis_of_two(t)),
    "topk": lambda t: t.topk(1, axis_of_two(t)),
    "cummax": lambda t: t.cummax(axis_of_two(t)),
    "clamp": lambda t: torch.clamp(t, max=t.flip(axis_of_two(t)).abs()),
    "gelu": F.gelu,
    "quantile": lambda t: t.quantile(0.25, dim=axis_of_two(t)),
    "median": lambda t: t.median(axis_of_two(t)),
    "unique": lambda t: t.round().unique(),
    "loss": lambda t: F.mse_loss(t, t.flip(axis_of_two(t))),
    "layer norm": lambda t: F.layer_norm(t, t.shape[t.dim() - 3 :]),
    "interpolation": lambda t: torch.lerp(t, t.flip(axis_of_two(t)), 0.25),
}


class ManyAxes(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def check(self, call, value):
        expected, found = call(value), call(moved(value))
        # Sums of up to 4096 numbers of which the largest is 30 times the mean, in float32.
        torch.testing.assert_close(
            found, expected, rtol=2e-5, atol=2e-4, check_device=False, check_stride=False
        )

    def test_real(self):
        for rank in (TWOS, 17, 33, 64):
            for name, call in (CASES | REAL).items():
                if rank == 64 and name == "quantile":
                    continue  # which sorts a tensor of one axis more
                with self.subTest(name, rank=rank):
                    self.check(call, shuffled(rank, seed=rank))

    def test_complex(self):
        for rank in (TWOS, 33, 64):
            for name, call in CASES.items():
                with self.subTest(name, rank=rank):
                    self.check(call, shuffled(rank, seed=rank, dtype=torch.complex64))

    def test_sums_over_more_axes_than_kernels_take(self):
        value = shuffled(19, twos=18)
        for name in ("sum of every second", "sum of the others", "sum with axes kept", "mean"):
            with self.subTest(name):
                self.check(CASES[name], value)
        for name in ("variance", "variance and mean", "norm", "amax", "logsumexp"):
            with self.subTest(name):
                self.check((CASES | REAL)[name], value)
        with self.subTest("complex"):
            self.check(CASES["sum of every second"], torch.complex(value, value.flip(0)))
        with self.subTest("two results"):
            self.check(lambda t: torch.aminmax(t, dim=axis_of_two(t)), value)

    def test_integers(self):
        for name in ("sum of two orders", "copy", "sum of every second", "gather", "scatter"):
            with self.subTest(name):
                self.check(CASES[name], shuffled(17, dtype=torch.int32))

    def test_gradients(self):
        def call(t):
            t = t.clone().requires_grad_()
            loss = (gate(t) ** 2).sum() + gathered(t).exp().mul(1e-9).sum() + t.amax(0).sum()
            return torch.autograd.grad(loss, t)[0]

        self.check(call, shuffled(18))

    def test_attention(self):
        for batch, mask in ((10, False), (10, True)):
            q, k, v = (torch.randn(*[2] * batch, 3, 4) for _ in range(3))
            bias = torch.randn(*[1, 2] * (batch // 2), 3, 3) if mask else None
            with self.subTest(mask=mask):
                expected = F.scaled_dot_product_attention(q, k, v, bias)
                given = [None if t is None else t.to("ocl") for t in (q, k, v, bias)]
                found = F.scaled_dot_product_attention(*given)
                torch.testing.assert_close(found.cpu(), expected, rtol=2e-5, atol=2e-5)

    def test_more_than_pytorch_has(self):
        tensor = torch.empty([1] * 65, device="ocl")
        with self.assertRaisesRegex(NotImplementedError, "tensors have at most 64 dimensions"):
            tensor.fill_(1)

    def test_a_quantum_circuit(self):
        """A state of 16 qubits after layers of gates, beside the same with matrices of numpy."""
        qubits, generator = 16, torch.Generator().manual_seed(1)
        angles = torch.rand(3, qubits, generator=generator) * math.pi

        def run(device, dtype):
            state = torch.zeros([2] * qubits, dtype=dtype, device=device)
            state[(0,) * qubits] = 1
            for layer in angles:
                for q, angle in enumerate(layer.tolist()):
                    c, s = math.cos(angle), math.sin(angle)
                    turn = torch.tensor([[c, -1j * s], [-1j * s, c]], dtype=dtype, device=device)
                    state = torch.tensordot(turn, state, dims=([1], [q])).movedim(0, q)
                for q in range(qubits - 1):  # a controlled phase
                    where = [slice(None)] * qubits
                    where[q] = where[q + 1] = 1
                    state = state.clone()
                    state[tuple(where)] *= 1j
            return state

        expected = run("cpu", torch.complex128)
        found = run("ocl", torch.complex64)
        self.assertAlmostEqual(found.abs().pow(2).sum().item(), 1, places=4)
        # 93 gates, each of which rounds twice.
        torch.testing.assert_close(
            found.cpu().to(torch.complex128), expected, rtol=0, atol=93 * 2 * 2**-24
        )


if __name__ == "__main__":
    unittest.main()
