"""torchao on ocl, with its integration: each layout's layer against float64 of the weight that
numpy unpacks from its bytes, gradients, and what is done with weights besides."""

import copy
import unittest
from collections.abc import Callable

import numpy as np
import test_quantised
import torch
from library_case import Case, applied, needs, quiet
from quantised_weights import values  # of tests/oracle, which library_case finds
from test_command_counts import commands
from torch.nn.functional import linear

with quiet():  # it tells which kernels it has not found
    try:
        import torchao
        from torchao.quantization import (
            Float8WeightOnlyConfig,
            Int4WeightOnlyConfig,
            Int8WeightOnlyConfig,
            IntxWeightOnlyConfig,
            PerAxis,
            PerGroup,
            PerRow,
            PerTensor,
            quantize_,
            to_nf4,
        )
        from torchao.quantization.quant_primitives import MappingType
    except ImportError:
        torchao = None

ROWS = (1, 3, 17, 130)


def array(t: torch.Tensor) -> np.ndarray:
    if t.dtype in (torch.bfloat16, torch.float16):
        t = t.float()
    return t.detach().cpu().numpy()


def tensors_of(w: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a weight keeps."""
    names, _ = w.__tensor_flatten__()
    return {name: getattr(w, name) for name in names}


def unpacked(w: torch.Tensor) -> torch.Tensor:
    """The weight in float64, of what it keeps; padding is left out."""
    n, k = w.shape
    name = type(w).__name__
    if name == "NF4Tensor":
        scale = w.dequantize_scalers(
            w.quantized_scalers, w.quantization_factor, w.scaler_block_size
        )
        given = ("codes", array(w.quantized_data), n, k, w.block_size, array(scale), array(w.nf4))
    elif name in ("Int8Tensor", "IntxUnpackedToInt8Tensor"):
        scale, group = array(w.scale), w.block_size[-1]
        rows = name == "Int8Tensor" and group == k
        zero = np.zeros_like(scale) if rows else array(w.zero_point)
        given = ("int8_zeros", array(w.qdata).view(np.uint8), n, k, group, scale, zero)
    elif name == "Float8Tensor":
        kind = "e5m2" if w.qdata.dtype == torch.float8_e5m2 else "e4m3"
        given = (kind, array(w.qdata.view(torch.uint8)), n, k, k, array(w.scale))
    elif name == "Int4TilePackedTo4dTensor":
        data, parts = array(w.qdata), array(w.scale_and_zero)
        n, k = 8 * data.shape[0], 128 * data.shape[1]
        given = ("int4_tiles", data, n, k, w.block_size[1], parts[..., 0].T, parts[..., 1].T)
    else:
        kind = "int4" if name == "Int4PlainInt32Tensor" else "int4_signed"
        data = array(w.qdata).view(np.uint8).reshape(n, -1)
        given = (kind, data, n, k, w.block_size[1], array(w.scale).T, array(w.zero_point).T)
    whole = torch.from_numpy(np.ascontiguousarray(values(*given)))
    return whole[: w.shape[0], : w.shape[1]]


def layer(n: int, k: int, config: object, dtype: torch.dtype = torch.bfloat16) -> torch.nn.Linear:
    made = torch.nn.Linear(k, n).to("ocl", dtype)
    quantize_(made, config)
    return made


def nf4(n: int, k: int, dtype: torch.dtype) -> torch.nn.Linear:
    made = torch.nn.Linear(k, n).to("ocl", dtype)
    made.weight = torch.nn.Parameter(to_nf4(made.weight.data, 64, 4), requires_grad=False)
    return made


def int4(packing: str, group: int = 64, choice: str = "tinygemm") -> object:
    return Int4WeightOnlyConfig(
        group_size=group, int4_packing_format=packing, int4_choose_qparams_algorithm=choice
    )


def intx(bits: int, granularity: object, symmetric: bool = True) -> object:
    mapping = MappingType.SYMMETRIC if symmetric else MappingType.ASYMMETRIC
    return IntxWeightOnlyConfig(getattr(torch, f"int{bits}"), granularity, mapping)


HALF, FULL = torch.bfloat16, torch.float32
LAYERS: dict[str, Callable[[], torch.nn.Linear]] = {
    "int8, rows": lambda: layer(37, 147, Int8WeightOnlyConfig(granularity=PerRow()), FULL),
    "int8, 16 bits": lambda: layer(37, 147, Int8WeightOnlyConfig(granularity=PerRow())),
    "int8, one scale": lambda: layer(37, 96, Int8WeightOnlyConfig(granularity=PerTensor())),
    "int8, groups": lambda: layer(21, 192, Int8WeightOnlyConfig(granularity=PerGroup(64)), FULL),
    "intx 4, groups": lambda: layer(37, 192, intx(4, PerGroup(32)), FULL),
    "intx 3, rows": lambda: layer(37, 147, intx(3, PerAxis(0), False), FULL),
    "intx 8, asymmetric": lambda: layer(21, 256, intx(8, PerGroup(128), False)),
    "float8, rows": lambda: layer(37, 147, Float8WeightOnlyConfig(granularity=PerRow()), FULL),
    "float8, one scale": lambda: layer(21, 96, Float8WeightOnlyConfig(granularity=PerTensor())),
    "int4 plain": lambda: layer(37, 256, int4("plain")),
    "int4 plain, float32": lambda: layer(37, 192, int4("plain", 32), FULL),
    "int4 plain_int32": lambda: layer(37, 256, int4("plain_int32", 128)),
    "int4 plain_int32, float16": lambda: layer(37, 96, int4("plain_int32", 32), torch.float16),
    "int4 tiles": lambda: layer(40, 1024, int4("tile_packed_to_4d")),
    "int4 tiles, padded": lambda: layer(37, 384, int4("tile_packed_to_4d", 128)),
    "int4 tiles, hqq": lambda: layer(40, 1024, int4("tile_packed_to_4d", 64, "hqq")),
    "nf4": lambda: nf4(36, 256, FULL),
    "nf4, 16 bits": lambda: nf4(36, 256, HALF),
}
ONE_LAUNCH = [name for name in LAYERS if "padded" not in name]


@needs("torchao")
class TorchAO(Case):
    near_values = test_quantised.Quantised.near

    def setUp(self) -> None:
        super().setUp()
        applied(self, "torchao")
        torch.manual_seed(0)

    def test_layers(self) -> None:
        for name, make in LAYERS.items():
            made = make()
            w, bias = made.weight, made.bias
            self.assertNotIn(type(w), (torch.Tensor, torch.nn.Parameter))
            want = unpacked(w)
            for rows in ROWS:
                with self.subTest(name, rows=rows), torch.no_grad():
                    x = torch.randn(rows, w.shape[1], dtype=bias.dtype)
                    self.near_values(made(x.to("ocl")), x, want, bias.cpu().double())
            with self.subTest(name), torch.no_grad():
                x = torch.randn(2, 3, w.shape[1], dtype=bias.dtype)
                got = linear(x.to("ocl"), w)
                self.assertEqual(got.shape, (2, 3, w.shape[0]))
                self.near_values(got, x, want)
                self.assertEqual(made(x[:0].to("ocl")).shape, (0, 3, w.shape[0]))

    def test_the_weight_is_read_in_place(self) -> None:
        """One launch, and no memory but the result's."""
        for name in ONE_LAUNCH:
            made = LAYERS[name]()
            x = torch.randn(1, made.weight.shape[1], device="ocl", dtype=made.bias.dtype)
            with self.subTest(name), torch.no_grad():
                made(x)
                self.assertEqual(commands(lambda made=made, x=x: made(x)), 1)
        made = layer(1024, 1024, int4("plain"))
        x = torch.randn(1, 1024, device="ocl", dtype=HALF)
        with torch.no_grad():
            made(x)
            torch.ocl.synchronize()
            torch.ocl.reset_peak_memory_stats()
            before = torch.ocl.memory_allocated()
            made(x)
            self.assertLess(torch.ocl.max_memory_allocated() - before, 1 << 16)

    def test_gradients(self) -> None:
        """Of x and bias, as those of a layer with the weight's values."""
        for name, make in LAYERS.items():
            made = make()
            w = unpacked(made.weight)
            for rows in (2, 20):
                with self.subTest(name, rows=rows):
                    x = torch.randn(rows, w.shape[1], device="ocl", dtype=made.bias.dtype)
                    factor = torch.randn(rows, w.shape[0], device="ocl", dtype=x.dtype)
                    x.requires_grad_()
                    made.bias.grad = None
                    (made(x) * factor).sum().backward()
                    given = factor.cpu().double()
                    eps = torch.finfo(x.dtype).eps
                    # Products of the weight rounded to the type, and their sums.
                    bound = eps * (given.abs() @ w.abs()).max().item() * 2
                    self.near(x.grad, given @ w, bound)
                    self.near(made.bias.grad, given.sum(0), eps * given.abs().sum(0).max().item())

    def test_bytes_stay(self) -> None:
        """Moved away and back, copied, saved and loaded: what the library keeps, bit for bit."""
        for name, make in LAYERS.items():
            made = make()
            kept = {k: t.cpu() for k, t in tensors_of(made.weight).items()}
            torch.save(made.state_dict(), self.folder / "layer.pt")
            loaded = torch.load(self.folder / "layer.pt", map_location="ocl", weights_only=False)
            x = torch.randn(3, made.weight.shape[1], device="ocl", dtype=made.bias.dtype)
            others = {
                "loaded": loaded["weight"],
                "away": made.weight.to("cpu"),
                "back": made.weight.to("cpu").to("ocl"),
            }
            if not name.startswith("nf4"):  # which torchao unpacks and packs again
                others["copied"] = copy.deepcopy(made).weight
            with torch.no_grad():
                want = linear(x, made.weight).cpu()
            for how, other in others.items():
                with self.subTest(name, how=how):
                    found = tensors_of(other)
                    self.assertEqual(found.keys(), kept.keys())
                    for part, t in found.items():
                        self.assertEqual(t.device.type, "cpu" if how == "away" else "ocl")
                        self.assertEqual(t.dtype, kept[part].dtype)
                        as_bytes = [a.cpu().contiguous().view(torch.uint8) if a.dim() else a.cpu()
                                    for a in (t, kept[part])]  # fmt: skip
                        self.assertTrue(torch.equal(*as_bytes), part)
                    if how != "away":
                        with torch.no_grad():
                            self.assertTrue(torch.equal(linear(x, other).cpu(), want))

    def test_slices_and_joined(self) -> None:
        for name in ("int8, rows", "int8, groups", "int4 plain", "int4 tiles", "intx 4, groups"):
            made = LAYERS[name]()
            w, values_of = made.weight.data, unpacked(made.weight)
            x = torch.randn(3, w.shape[1], dtype=made.bias.dtype)
            with self.subTest(name), torch.no_grad():
                part = w[8:16]
                self.near_values(linear(x.to("ocl"), part), x, values_of[8:16])
        for name in ("int4 plain",):
            a, b = (LAYERS[name]().weight.data for _ in range(2))
            x = torch.randn(3, a.shape[1], dtype=a.dtype)
            with self.subTest(name), torch.no_grad():
                want = torch.cat([unpacked(a), unpacked(b)])
                self.near_values(linear(x.to("ocl"), torch.cat([a, b])), x, want)

    def test_scales_that_are_written_to(self) -> None:
        """Those of NF4 are unpacked once, unless they change."""
        made = nf4(36, 256, FULL)
        x = torch.randn(2, 256)
        with torch.no_grad():
            made(x.to("ocl"))
            made.weight.quantized_scalers.neg_()
            want = unpacked(made.weight)
            self.near_values(made(x.to("ocl")), x, want, made.bias.cpu().double())

    def test_without_kernels(self) -> None:
        """Blocks that kernels do not know stay with torchao's operators."""
        made = layer(21, 48, intx(4, PerGroup(16)), FULL)
        x = torch.randn(3, 48)
        with torch.no_grad():
            want = x.double() @ unpacked(made.weight).T + made.bias.cpu().double()
            self.near(made(x.to("ocl")), want, 1e-5)

    def test_wrong(self) -> None:
        for name in ("int8, rows", "int4 plain", "int4 tiles", "nf4", "float8, rows"):
            made = LAYERS[name]()
            wrong = torch.randn(3, 50, device="ocl", dtype=made.bias.dtype)
            words = rf"expected x of shape \[..., {made.weight.shape[1]}\] for a .* got \[3, 50\]"
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, words):
                made(wrong)
        with self.assertRaisesRegex(ValueError, "expected a matrix of float16 or bfloat16"):
            layer(8, 64, int4("plain_int32"), FULL)
        # A device without mslk: torchao's own words.
        with self.assertRaisesRegex(ImportError, "mslk"):
            quantize_(torch.nn.Linear(64, 8).to(HALF), int4("plain"))
        made = LAYERS["int4 plain"]()
        with torch.no_grad():
            x = torch.randn(1, 256, device="ocl", dtype=HALF)
            self.assertTrue(made(x).isfinite().all())  # and all goes on

    def test_a_model_learns(self) -> None:
        """Adapters beside frozen weights of 4 bits."""
        frozen = nf4(64, 64, FULL)
        first, last = (torch.nn.Linear(64, 64).to("ocl") for _ in range(2))
        model = torch.nn.Sequential(first, frozen, torch.nn.Tanh(), last)
        optimizer = torch.optim.AdamW([*first.parameters(), *last.parameters()], lr=0.01)
        x, y = torch.randn(32, 64, device="ocl"), torch.randn(32, 64, device="ocl")
        losses = []
        for _ in range(30):
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 2)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
