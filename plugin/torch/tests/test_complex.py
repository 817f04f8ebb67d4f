"""complex64 on ocl against torch's CPU: moves, views, pointwise operators, reductions, products,
gradients."""

import itertools
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
C64 = torch.complex64
INF, NAN = float("inf"), float("nan")


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=C64)


class OnBoth(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(5)

    # assert_close judges |ours - theirs| of complex numbers by the modulus: a part that is small
    # beside the other one has the other one's rounding error, on every device.
    def same(
        self, function, *tensors: torch.Tensor, rtol: float = 2e-6, atol: float = 2e-6
    ) -> None:
        theirs = function(*tensors)
        ours = function(*(t.to("ocl") for t in tensors))
        flat = torch.utils._pytree.tree_leaves
        for mine, wanted in zip(flat(ours), flat(theirs), strict=True):
            if isinstance(wanted, torch.Tensor):
                self.assertEqual(mine.device.type, "ocl")
                mine, wanted = (t.cpu().resolve_conj().resolve_neg() for t in (mine, wanted))
                torch.testing.assert_close(mine, wanted, rtol=rtol, atol=atol, equal_nan=True)
            else:
                self.assertEqual(mine, wanted)

    def each(self, functions: dict, *tensors: torch.Tensor, **tolerance) -> None:
        for name, function in functions.items():
            with self.subTest(name=name):
                self.same(function, *tensors, **tolerance)


class Moves(OnBoth):
    def test_layouts(self) -> None:
        x = random(5, 6, 7)
        self.each(
            {
                "round trip": lambda x: x + 0,
                "transposed": lambda x: x.transpose(0, 2).contiguous(),
                "sliced": lambda x: x[1:4, ::2, 3:].clone(),
                "expanded": lambda x: x[:, :1].expand(5, 3, 7).contiguous(),
                "empty": lambda x: x[:0] * 2,
                "flip": lambda x: x.flip(0, 2),
                "roll": lambda x: x.roll((2, -3), (0, 2)),
                "flat roll": lambda x: x.roll(9),
                "tril": lambda x: x.tril(1),
                "triu": lambda x: x.triu(-1),
                "cat": lambda x: torch.cat([x, x.conj(), x.real], 1),
                "many": lambda x: torch.cat([x] * 6, 2),
                "stack": lambda x: torch.stack([x, 2 * x]),
            },
            x,
            rtol=0,
            atol=0,
        )

    def test_conversions(self) -> None:
        x = torch.tensor([0, 1, 1j, -2.5 + 3j, complex(NAN, 1), complex(-0.0, -0.0)], dtype=C64)
        for dtype in (torch.bool, torch.float16, torch.bfloat16, torch.float32):
            self.same(lambda x, to=dtype: x.to(to), x, rtol=0, atol=0)
            self.same(lambda x, to=dtype: x.real.to(to).to(C64), x, rtol=0, atol=0)
        self.same(lambda x: torch.arange(-3, 5, device=x.device).to(C64), x)

    def test_views_share_memory(self) -> None:
        for device in ("cpu", "ocl"):
            x = torch.zeros(3, 2, dtype=C64, device=device)
            x.real.fill_(2)
            x.imag[1] = 3
            torch.view_as_real(x)[2, :, 0] = -1
            x.conj().imag[0] = 7
            x.conj()[:, 1].mul_(1j)
            want = torch.tensor([[2 - 7j, -7 - 2j], [2 + 3j, 3 - 2j], [-1, 1j]])
            self.assertTrue(torch.equal(x.cpu(), want), (device, x))
        x = random(4).to("ocl")
        self.assertEqual(torch.view_as_complex(torch.view_as_real(x)).data_ptr(), x.data_ptr())

    def test_lazy_conjugation_and_negation(self) -> None:
        x, y = random(4, 5), random(4, 5)
        self.assertTrue(x.to("ocl").conj().is_conj())
        self.assertTrue(x.to("ocl").conj().imag.is_neg())
        self.each(
            {
                "resolve": lambda x, y: x.conj().resolve_conj(),
                "negative": lambda x, y: x.conj().imag.resolve_neg(),
                "in pointwise": lambda x, y: x.conj() * y + x.mH.mT,
                "negated": lambda x, y: x.conj().imag + y.real,
                "physical": lambda x, y: torch.conj_physical(x),
                "to host": lambda x, y: x.conj(),
                "negated to host": lambda x, y: x.conj().imag,
                "item": lambda x, y: x.conj()[1, 2].item(),
            },
            x,
            y,
            rtol=0,
            atol=1e-6,
        )
        for source in (x, x.conj(), x.to("ocl"), x.to("ocl").conj()):
            target = y.to("ocl")
            target.conj().copy_(source)
            self.assertTrue(torch.equal(target.cpu(), source.cpu().conj().resolve_conj()))
            target = y.to("ocl")
            target.conj().imag.copy_(source.real)
            self.assertTrue(torch.equal(target.cpu(), torch.complex(y.real, -source.real.cpu())))
        host = random(4, 5)
        host.conj().copy_(x.to("ocl"))
        self.assertTrue(torch.equal(host, x.conj()))

    def test_made(self) -> None:
        x = random(3)
        make = {"dtype": C64}
        self.each(
            {
                "zeros": lambda x: torch.zeros(3, device=x.device, **make),
                "ones": lambda x: torch.ones(2, device=x.device, **make),
                "full": lambda x: torch.full((2, 2), 1 - 2j, device=x.device),
                "fill": lambda x: torch.empty_like(x).fill_(2j),
                "fill tensor": lambda x: torch.empty_like(x).fill_(x[1]),
                "eye": lambda x: torch.eye(3, 4, device=x.device, **make),
                "linspace": lambda x: torch.linspace(1j, 2 - 1j, 7, device=x.device, **make),
                "complex": lambda x: torch.complex(x.real, x.imag),
                "polar": lambda x: torch.polar(x.real.abs(), x.imag),
                "item": lambda x: x[1].item(),
                "list": lambda x: x.tolist(),
                "number": lambda x: complex(x[0]),
            },
            x,
        )
        torch.manual_seed(1)
        drawn = torch.randn(20000, dtype=C64, device="ocl")
        self.assertAlmostEqual(drawn.var().item(), 1, delta=0.05)
        self.assertLess(drawn.mean().abs().item(), 0.03)

    def test_printing(self) -> None:
        x = torch.tensor([1 + 2j, -0.5j, 1000.25, complex(NAN, INF)])
        self.assertEqual(str(x.to("ocl")), str(x).replace(")", ", device='ocl:0')"))
        self.assertEqual(
            str(x.to("ocl").conj()[:2]), str(x.conj()[:2]).replace(")", ", device='ocl:0')")
        )

    def test_indexing(self) -> None:
        x, i, mask = random(5, 7), torch.randint(5, (5, 7)), torch.rand(5, 7) > 0.5
        self.each(
            {
                "gather": lambda x, i, m: x.gather(0, i),
                "index_select": lambda x, i, m: x.index_select(1, i[0]),
                "index": lambda x, i, m: x[i[:, 0], i[:, 1]],
                "mask": lambda x, i, m: x[m],
                "take": lambda x, i, m: x.take(i),
                "embedding": lambda x, i, m: torch.nn.functional.embedding(i, x),
                "masked_fill": lambda x, i, m: x.masked_fill(m, 1 - 3j),
                "masked_fill tensor": lambda x, i, m: x.masked_fill(m, x[0, 0]),
                "where": lambda x, i, m: torch.where(m, x, x.conj()),
                "where number": lambda x, i, m: torch.where(m, x, 2j),
                "where real": lambda x, i, m: torch.where(m, x.real, x),
                "nonzero": lambda x, i, m: (x * m).nonzero(),
                "scatter": lambda x, i, m: x[:1].scatter(0, i[:1] * 0, x),
                "scatter number": lambda x, i, m: x.scatter(1, i, 1j),
                "scatter_add": lambda x, i, m: x.scatter_add(0, i, x.conj()),
                "index_add": lambda x, i, m: x.index_add(0, i[:, 0], x),
                "put": lambda x, i, m: x.clone().index_put_(
                    (torch.arange(5, device=x.device),), x.flip(0)
                ),
                "put sum": lambda x, i, m: x.clone().index_put_(
                    (i[:, 0],), x.conj(), accumulate=True
                ),
                "put mask": lambda x, i, m: x.clone().masked_fill_(m, 0).index_put_((m,), x.sum()),
                "masked_scatter": lambda x, i, m: x.masked_scatter(m, x.flip(0)),
                "unique": lambda x, i, m: x.repeat_interleave(2, 0),
            },
            x,
            i,
            mask,
        )


UNARY = (
    "abs angle neg sgn reciprocal square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos "
    "tan "
    "sinh cosh tanh asin acos atan asinh acosh atanh sigmoid sinc isnan isinf isfinite "
    "logical_not nan_to_num conj_physical"
).split()


class Pointwise(OnBoth):
    def test_unary(self) -> None:
        for scale in (1e-20, 1e-3, 1, 10, 1e15):
            x = random(3, 70) * scale
            if scale == 10:
                x = torch.complex(x.real.clamp(-60, 60), x.imag)
            for name in UNARY:
                if scale == 1e15 and name in ("exp2", "sigmoid", "sinc"):
                    continue  # sines of numbers that rounding has moved by many turns
                with self.subTest(name=name, scale=scale):
                    # Everywhere within a few float32 roundings of complex128's result.
                    wide = getattr(torch, name)(x.to(torch.complex128))
                    ours = getattr(torch, name)(x.to("ocl")).cpu()
                    wanted = wide.to(ours.dtype)
                    keep = torch.isfinite(torch.view_as_real(wanted + 0j)).all(-1)
                    torch.testing.assert_close(
                        ours[keep], wanted[keep], rtol=2e-5 if name == "sinc" else 4e-6, atol=1e-30
                    )
                    strided = getattr(torch, name)(x.to("ocl").mT[::2]).cpu()
                    torch.testing.assert_close(
                        strided, ours.mT[::2], rtol=0, atol=0, equal_nan=True
                    )

    def test_special_values(self) -> None:
        parts = (0.0, -0.0, 1.0, -2.5, INF, -INF, NAN)
        x = torch.tensor([complex(a, b) for a, b in itertools.product(parts, parts)], dtype=C64)
        # C99's Annex G leaves the signs of some results open: these it does not.
        finite = torch.isfinite(x.real) & torch.isfinite(x.imag)
        for (
            name
        ) in "sqrt log exp atan atanh tan tanh asin acos asinh acosh sin cos sinh cosh".split():
            with self.subTest(name=name):
                ours = getattr(torch, name)(x.to("ocl")).cpu()
                theirs = torch.stack([getattr(torch, name)(v) for v in x.to(torch.complex128)]).to(
                    C64
                )
                torch.testing.assert_close(ours[finite], theirs[finite], rtol=2e-6, atol=1e-7)
                signs = [torch.signbit(torch.view_as_real(t[finite])) for t in (ours, theirs)]
                # torch's acos is pi / 2 - asin, without the sign of a zero imaginary part
                self.assertTrue(
                    name == "acos" or torch.equal(*signs), (x[finite], ours[finite], theirs[finite])
                )
                self.assertTrue(
                    torch.equal(torch.isinf(ours), torch.isinf(theirs)), (x, ours, theirs)
                )
                self.assertTrue(
                    torch.equal(torch.isnan(ours), torch.isnan(theirs)), (x, ours, theirs)
                )
        self.each(
            {
                "abs": lambda x: x.abs(),
                "angle": lambda x: x.angle(),
                "eq": lambda x: x == x.flip(0),
                "ne": lambda x: x != x,
                "isnan": lambda x: x.isnan(),
                "isfinite": lambda x: x.isfinite(),
                "and": lambda x: x.logical_and(x.flip(0)),
                "nan_to_num": lambda x: x.nan_to_num(3, 4, 5),
                "neg": lambda x: -x,
            },
            x,
        )

        # torch multiplies by an alpha of 1 + 0j, so that an infinite part makes the other one NaN;
        # parts add up here.
        y = x.flip(0).contiguous()
        ours = torch.add(x.to("ocl"), y.to("ocl")).cpu()
        wanted = torch.view_as_complex(torch.view_as_real(x) + torch.view_as_real(y))
        torch.testing.assert_close(ours, wanted, rtol=0, atol=0, equal_nan=True)

    def test_large_moduli(self) -> None:
        x = torch.tensor([3e38 + 3e38j, 1e30 - 1e30j, 2e-38j + 1e-38, 88.9 + 1j, -100 + 2j])
        for name in ("abs", "log", "sqrt", "asin", "acosh", "tanh", "exp"):
            with self.subTest(name=name):
                wide = getattr(torch, name)(x.to(torch.complex128))
                ours = getattr(torch, name)(x.to("ocl")).cpu()
                torch.testing.assert_close(ours, wide.to(ours.dtype), rtol=4e-6, atol=1e-38)
        y = torch.tensor([2e38 - 1e38j, 1e30 + 2e30j, 1e-38 + 1e-38j, 3j, 5])
        ours = (x.to("ocl") / y.to("ocl")).cpu()
        torch.testing.assert_close(
            ours, (x.to(torch.complex128) / y).to(C64), rtol=4e-6, atol=1e-38
        )

    def test_binary(self) -> None:
        x, y, w = random(4, 1, 6), random(5, 6), random(4, 5, 6)
        self.each(
            {
                "add": lambda x, y, w: torch.add(x, y, alpha=2 - 1j),
                "sub": lambda x, y, w: torch.sub(x, y, alpha=0.5),
                "rsub": lambda x, y, w: torch.rsub(x, y, alpha=2j),
                "mul": lambda x, y, w: x * y,
                "div": lambda x, y, w: x / y,
                "real": lambda x, y, w: x * y.real - x.imag / y,
                "number": lambda x, y, w: (2 - x) * 3j / (1 + 2j) + True,
                "divided": lambda x, y, w: 1j / x,
                "int": lambda x, y, w: x + torch.arange(6, device=x.device),
                "promoted": lambda x, y, w: y.real + 1j,
                "half": lambda x, y, w: x + y.real.half(),
                "pow": lambda x, y, w: x**y,
                "pow 2": lambda x, y, w: x**2,
                "pow 3": lambda x, y, w: x**3,
                "pow -1": lambda x, y, w: x**-1,
                "pow 2.5": lambda x, y, w: x**2.5,
                "pow j": lambda x, y, w: x**1j,
                "number pow": lambda x, y, w: 2**x,
                "pow 0": lambda x, y, w: x**0,
                "eq": lambda x, y, w: x == x.clone(),
                "eq number": lambda x, y, w: x * 0 == 0j,
                "ne": lambda x, y, w: x != y,
                "or": lambda x, y, w: x.logical_or(y),
                "xor": lambda x, y, w: x.logical_xor(y * 0),
                "addcmul": lambda x, y, w: torch.addcmul(w, x, y, value=1 - 2j),
                "addcdiv": lambda x, y, w: torch.addcdiv(w, x, y, value=2),
                "lerp": lambda x, y, w: torch.lerp(x, y, 0.3 + 0.2j),
                "lerp tensor": lambda x, y, w: torch.lerp(x, y, w),
                "cpu scalar": lambda x, y, w: x + torch.tensor(1 + 1j),
                "cpu double": lambda x, y, w: x * torch.tensor(2.0, dtype=torch.float64),
                "in place": lambda x, y, w: w.clone().mul_(y).add_(x).div_(2j).sub_(1),
            },
            x,
            y,
            w,
            rtol=1e-5,
        )
        if VERSION < (2, 14):  # since then it is bcomplex32 on the CPU, which cannot multiply it
            self.each({"bfloat16": lambda y: y.real.bfloat16() * 1j}, y, rtol=1e-5)
        out = torch.empty(4, 5, 6, dtype=C64, device="ocl")
        torch.add(x.to("ocl").real, y.to("ocl").imag, out=out)
        torch.testing.assert_close(out.cpu(), (x.real + y.imag).to(C64))
        torch.abs(w.to("ocl"), out=out)
        torch.testing.assert_close(out.cpu(), w.abs().to(C64))
        torch.mul(x.to("ocl"), y.to("ocl"), out=out.conj())
        torch.testing.assert_close(out.cpu(), (x * y).conj().resolve_conj())


class Reductions(OnBoth):
    def test_dims(self) -> None:
        x = random(3, 5, 7)
        for source in (
            lambda x: x,
            lambda x: x.transpose(0, 2),
            lambda x: x[:, ::2].conj(),
            lambda x: x[:0],
        ):
            for dim, keep in itertools.product((None, 0, -1, (0, 2), (0, 1, 2)), (False, True)):
                kw = {"dim": dim, "keepdim": keep} if dim is not None else {}
                with self.subTest(dim=dim, keep=keep, shape=tuple(source(x).shape)):
                    names = ["sum", "mean", "var", "std", "var_mean"]
                    names += [] if isinstance(dim, tuple) else ["prod", "any", "all"]
                    for name in names:
                        self.same(
                            lambda x, f=name: getattr(torch, f)(source(x), **kw), x, rtol=1e-5
                        )
                    for order in (0, 1, 2, 3.5, INF, -INF):
                        if source(x).numel() or order not in (INF, -INF):
                            self.same(
                                lambda x, o=order: torch.linalg.vector_norm(source(x), o, **kw),
                                x,
                                rtol=1e-5,
                            )

    def test_others(self) -> None:
        x = random(6, 9)
        self.each(
            {
                "scalar": lambda x: x[0, 0].sum() + x[0, 0].mean() + x[0, 0].prod(),
                "dtype": lambda x: x.real.sum(0, dtype=C64),
                "cumsum": lambda x: x.cumsum(0) + x.cumsum(-1),
                "cumprod": lambda x: x.cumprod(0) * x.cumprod(1),
                "norm": lambda x: x.norm(),
                "nans": lambda x: (x / x.real.round()).sum(0).isnan(),
                "count": lambda x: torch.count_nonzero(x),
                "equal": lambda x: torch.equal(x, x),
                "allclose": lambda x: torch.allclose(x, x + 1e-7j),
                "trace": lambda x: x.trace(),
                "logcumsumexp": lambda x: x.logcumsumexp(0).exp() + x.mT.logcumsumexp(0).mT,
                "cumsum type": lambda x: x.real.cumsum(0, dtype=C64),
            },
            x,
            rtol=1e-5,
        )
        long = random(200_000)
        self.same(lambda x: x.sum(), long, rtol=1e-4)
        self.same(lambda x: (x / x.abs())[:3000].prod(), long, rtol=1e-4)


class Products(OnBoth):
    def test_matrices(self) -> None:
        # Sums of k products round like a random walk: sqrt(k) roundings of the sum of the moduli,
        # about k here.
        sizes = (
            (1, 1, 1),
            (3, 4, 5),
            (1, 70, 6),
            (6, 70, 1),
            (1, 300, 1),
            (0, 3, 4),
            (3, 0, 4),
            (65, 70, 33),
            (4, 200, 3),
        )
        for m, k, n in sizes:
            a, b, c = random(m, k), random(k, n), random(m, n)
            tolerance = {"rtol": 1e-5, "atol": 1e-6 * (k + 1)}
            lay = {"n": lambda t: t, "t": lambda t: t.mT.contiguous().mT}
            lay |= {"c": lambda t: t.conj(), "h": lambda t: t.mH.contiguous().mH}
            for (la, fa), (lb, fb) in itertools.product(lay.items(), lay.items()):
                with self.subTest(m=m, k=k, n=n, layouts=la + lb):
                    self.same(lambda a, b, c: fa(a) @ fb(b), a, b, c, **tolerance)
                    self.each(
                        {
                            "add": lambda a, b, c: torch.addmm(
                                lay[la](c), fa(a), fb(b), beta=0.5 - 1j, alpha=2 + 1j
                            ),
                            "out": lambda a, b, c: torch.mm(
                                fa(a), fb(b), out=torch.empty(n, m, dtype=C64, device=a.device).mH
                            ),
                        },
                        a,
                        b,
                        c,
                        **tolerance,
                    )
            self.each(
                {
                    "mv": lambda a, b, c: a @ b[:, 0],
                    "vector": lambda a, b, c: b.mT[0] @ a.mT,
                    "addmv": lambda a, b, c: torch.addmv(c[:, 0], a, b[:, 0], beta=1j, alpha=2),
                    "dot": lambda a, b, c: torch.dot(b[:, 0], b[:, -1].conj()),
                    "vdot": lambda a, b, c: torch.vdot(b[:, 0], b[:, -1]),
                    "row": lambda a, b, c: torch.addmm(c[:1].expand(m, n), a, b, beta=2),
                    "nan": lambda a, b, c: torch.addmm(c * NAN, a, b, beta=0),
                },
                a,
                b,
                c,
                **tolerance,
            )

    def test_batches(self) -> None:
        a, b, c = random(4, 5, 6), random(4, 6, 3), random(5, 3)
        self.each(
            {
                "bmm": lambda a, b, c: a @ b,
                "shared left": lambda a, b, c: a[:1].expand(4, 5, 6) @ b,
                "shared right": lambda a, b, c: torch.bmm(a, b[:1].expand(4, 6, 3)),
                "adjoint": lambda a, b, c: b.mH @ a.mH,
                "baddbmm": lambda a, b, c: torch.baddbmm(c, a, b, beta=1j, alpha=-2),
                "einsum": lambda a, b, c: torch.einsum("bij,bjk->ik", a, b.conj()),
                "outer": lambda a, b, c: torch.outer(c[0], c[1].conj()),
                "linear": lambda a, b, c: torch.nn.functional.linear(a, b[0].mT, c[0]),
                "tensordot": lambda a, b, c: torch.tensordot(a, b, ([2], [1])),
                "chain": lambda a, b, c: torch.linalg.multi_dot([a[0], b[0], c.mH]),
                "power": lambda a, b, c: torch.linalg.matrix_power(c[:3], 3),
                "conv": lambda a, b, c: torch.nn.functional.conv1d(a, b[:2, :5]),
            },
            a,
            b,
            c,
            rtol=1e-5,
            atol=1e-5,
        )


class Gradients(OnBoth):
    def test_backward(self) -> None:
        def gradient(function):
            def run(x):
                z = x.detach().clone().requires_grad_()
                out = function(z)
                ((out.abs() ** 2) if out.is_complex() else out).sum().backward()
                return z.grad

            return run

        functions = {
            "mul": lambda z: z * z.conj() * z,
            "abs": torch.abs,
            "matmul": lambda z: z @ z.mH,
            "exp": torch.exp,
            "log": torch.log,
            "sqrt": torch.sqrt,
            "tanh": torch.tanh,
            "sigmoid": torch.sigmoid,
            "div": lambda z: 1 / z,
            "pow": lambda z: z**2.5,
            "index": lambda z: z[[0, 0, 1]],
            "sum": lambda z: z.sum(1),
            "prod": lambda z: z.prod(1),
            "norm": lambda z: torch.linalg.vector_norm(z, dim=1),
            "angle": torch.angle,
            "cumprod": lambda z: z.cumprod(1),
            "parts": lambda z: z.real * z.imag,
            "var": lambda z: z.var(0),
            "acos": torch.acos,
            "sgn": torch.sgn,
            "where": lambda z: torch.where(z.real > 0, z, z.conj()),
            "vdot": lambda z: torch.vdot(z[0, 0], z[1, 0]),
            "view": lambda z: torch.view_as_real(z)[..., 1],
            "mixed": lambda z: z.real.exp() * z,
            "gather": lambda z: z.gather(
                0, torch.zeros(1, 5, 4, dtype=torch.int64, device=z.device)
            ),
        }
        self.each(
            {name: gradient(f) for name, f in functions.items()},
            random(3, 5, 4),
            rtol=1e-4,
            atol=1e-4,
        )

    def test_training(self) -> None:
        def train(x, weight):
            w = weight.clone().requires_grad_()
            optimizer = torch.optim.Adam([w], lr=0.05)
            for _ in range(5):
                optimizer.zero_grad()
                loss = (x @ w).abs().square().mean()
                loss.backward()
                optimizer.step()
            return w.detach(), loss.detach()

        self.same(train, random(8, 4), random(4, 3), rtol=1e-4, atol=1e-4)

    def test_lists(self) -> None:
        def lists(x, y):
            return torch._foreach_mul(torch._foreach_add([x, y], [y, x], alpha=2), 1j)

        self.same(lists, random(4), random(4))


class Promotions(OnBoth):
    def test_types(self) -> None:
        """Beside other types; a number keeps the precision of the tensor beside it."""
        x = random(4, 4)
        for name, call in {
            "float64": lambda x: x + torch.ones(2, 4, 4, dtype=torch.float64, device=x.device) / 3,
            "float16": lambda x: x * x.real.half(),
            "bfloat16": lambda x: x * x.real.bfloat16(),
            "scalar tensor": lambda x: x * torch.ones((), dtype=torch.float64, device=x.device),
            "float16 with a number": lambda x: (x.real.half() * (0.5 - 1j)).to(C64),
            "float64 with a number": lambda x: x.real.double() * (0.3 - 1j),
        }.items():
            with self.subTest(name=name):
                self.assertEqual(call(x.to("ocl")).dtype, call(x).dtype)
                # one rounding to float16 is 5e-4
                tolerance = 1e-3 if name == "float16 with a number" else 2e-6
                self.same(call, x, rtol=tolerance, atol=tolerance)


class Refusals(OnBoth):
    def test_declined_by_name(self) -> None:
        x = random(4, 4).to("ocl")
        for name, call in {
            "scatter": lambda: x.scatter(
                0, torch.zeros(4, 4, dtype=torch.int64, device="ocl"), x, reduce="multiply"
            ),
            "lt": lambda: x < x,
            "relu": lambda: x.relu(),
            "max": lambda: x.max(),
            "hypot": lambda: torch.hypot(x, x),
            "atan2": lambda: torch.atan2(x, x),
            "maximum": lambda: torch.maximum(x, x),
        }.items():
            with self.subTest(name=name):
                with self.assertRaisesRegex((NotImplementedError, RuntimeError), name):
                    call()

    def test_errors(self) -> None:
        x, real = random(3).to("ocl"), torch.ones(3, device="ocl")
        for name, call in {
            "fill": lambda: real.fill_(1j),
            "scatter": lambda: real.scatter(0, torch.zeros(1, dtype=torch.int64, device="ocl"), 1j),
            "masked_fill": lambda: real.masked_fill(real > 0, 1j),
            "alpha": lambda: torch.add(real, real, alpha=1j),
            "out": lambda: torch.add(x, x, out=real),
            "in place": lambda: real.mul_(x),
            "abs_": lambda: x.abs_(),
            "float": lambda: float(x[0]),
            "beta": lambda: torch.addmm(*[torch.ones(2, 2, device="ocl")] * 3, alpha=1j),
            "mixed": lambda: torch.dot(x, real),
            "masked_fill tensor": lambda: real.masked_fill(real > 0, x[0]),
        }.items():
            with self.subTest(name=name):
                with self.assertRaises(RuntimeError):
                    call()
        self.assertTrue(torch.equal(real.cpu(), torch.ones(3)))


if __name__ == "__main__":
    unittest.main()
