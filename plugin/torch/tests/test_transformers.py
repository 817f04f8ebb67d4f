"""torch.nn's transformer modules in every combination of mask, layout, dtype, mode and weights,
against the CPU in float64."""

import itertools
import unittest
import warnings

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn

BATCH, QUERIES, KEYS, WIDTH, HEADS = 2, 5, 7, 8, 2
MASKS = (
    "none",
    "bool",
    "bool3",
    "float",
    "float3",
    "causal",
    "padding",
    "float padding",
    "bool+padding",
    "float+float padding",
)
LAYOUTS = ("batch first", "batch second", "no batch")
# training, and what encloses the call; dropout is 0, so that all give the same numbers
MODES = {
    "training": (True, torch.enable_grad),
    "eval": (False, torch.enable_grad),
    "no_grad": (False, torch.no_grad),
    "inference": (False, torch.inference_mode),
}
# How far off results may be, in eps of the dtype, relative to the largest output or gradient of the
# case: every layer rounds some ten products of 8 to 16 terms, normalises, and adds. In float32 the
# CPU's kernels are up to 3.4 off, ours up to 4.5.
EPS_OFF = 8


def attention_mask(kind: str, queries: int, keys: int, batch: int) -> torch.Tensor | None:
    """[queries, keys], or one for each batch and head; every row has a key that is attended to."""
    if "causal" in kind:
        return nn.Transformer.generate_square_subsequent_mask(queries).double()
    if not kind.startswith(("bool", "float")) or kind == "float padding":
        return None
    shape = (batch * HEADS, queries, keys) if "3" in kind else (queries, keys)
    if kind.startswith("float"):
        return torch.randn(shape, dtype=torch.float64)
    return (torch.rand(shape) > 0.6).index_fill(-1, torch.tensor([0]), False)


def padding_mask(kind: str, keys: int, batched: bool) -> torch.Tensor | None:
    if "padding" not in kind:
        return None
    mask = torch.arange(keys) >= torch.tensor([[keys - 3], [keys]])
    mask = mask if batched else mask[0]
    return (
        torch.zeros(mask.shape, dtype=torch.float64).masked_fill(mask, -torch.inf)
        if "float" in kind
        else mask
    )


def sequences(layout: str, *lengths: int) -> list[torch.Tensor]:
    shapes = {
        "batch first": (BATCH, 0, WIDTH),
        "batch second": (0, BATCH, WIDTH),
        "no batch": (0, WIDTH),
    }[layout]
    return [torch.randn([n or length for n in shapes], dtype=torch.float64) for length in lengths]


class Case:
    """A module, its inputs and masks in float64 on the CPU; what they give there is the
    reference."""

    def __init__(
        self, module: nn.Module, inputs: list[torch.Tensor], masks: dict, dtype: torch.dtype
    ) -> None:
        # Numbers that the dtype holds.
        self.module = module.to(dtype).double()
        self.inputs = [t.to(dtype).double() for t in inputs]
        numbers = {
            k for k, m in masks.items() if isinstance(m, torch.Tensor) and m.is_floating_point()
        }
        self.masks = {k: m.to(dtype).double() if k in numbers else m for k, m in masks.items()}
        self.dtype = dtype
        before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(
            False
        )  # on the CPU it takes every float mask for a bool one
        try:
            self.want = self.run("cpu", torch.float64, "training")
        finally:
            torch.backends.mha.set_fastpath_enabled(before)

    def run(self, device: str, dtype: torch.dtype, mode: str) -> tuple[list, list[torch.Tensor]]:
        """Outputs (None where there is none) and, in training, gradients."""
        training, context = MODES[mode]

        def move(value):
            if not isinstance(value, torch.Tensor):
                return value
            return value.to(device, dtype) if value.is_floating_point() else value.to(device)

        module = self.module.to(device, dtype).train(training)
        module.zero_grad()
        inputs = [move(t) for t in self.inputs]
        with context():
            if training:
                inputs = [t.detach().requires_grad_() for t in inputs]
            # self-attention is one tensor three times: only then does PyTorch take its fast path
            arguments = (
                inputs * 3
                if isinstance(module, nn.MultiheadAttention) and len(inputs) == 1
                else inputs
            )
            out = module(*arguments, **{k: move(m) for k, m in self.masks.items()})
        outs = list(out) if isinstance(out, tuple) else [out]
        grads = []
        if mode == "training":
            loss = sum(
                (t * weight.to(t)).sum()
                for t, weight in zip(outs, self.loss_weights(outs), strict=True)
                if t is not None
            )
            loss.backward()
            # module.to() moves gradients in place
            grads = [p.grad.cpu().double().clone() for p in [*inputs, *module.parameters()]]
        self.module = module.cpu().double()
        return [t if t is None else t.detach().cpu().double() for t in outs], grads

    def loss_weights(self, outs: list) -> list:
        """Random ones: a sum over normalised rows has no gradient worth its name."""
        generator = torch.Generator().manual_seed(31)
        return [
            None if t is None else torch.randn(t.shape, generator=generator, dtype=torch.float64)
            for t in outs
        ]

    def packed(self) -> list[torch.Tensor]:
        """The results where an encoder packs its sequences: its norm sees zeros behind them."""
        out = self.want[0][0].clone()
        out[self.masks["src_key_padding_mask"] != 0] = self.module.norm.bias.detach()
        return [out]

    def check(self, test: unittest.TestCase, mode: str, packed: bool = False) -> None:
        outs, grads = self.run("ocl", self.dtype, mode)
        want = self.packed() if packed and mode in ("no_grad", "inference") else self.want[0]
        test.assertEqual([t is None for t in outs], [t is None for t in want])
        for ours, theirs in (
            (outs, want),
            (grads, self.want[1] if mode == "training" else []),
        ):
            pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None]
            largest = max((b.abs().max() for _, b in pairs), default=None)
            for a, b in pairs:
                test.assertEqual(a.shape, b.shape)
                test.assertLess(
                    ((a - b).abs().max() / largest / torch.finfo(self.dtype).eps).item(), EPS_OFF
                )


def combinations(modes=tuple(MODES)):
    """(mask, layout, dtype, modes): 16-bit types in one layout, for theirs are the same
    operators."""
    for mask, layout in itertools.product(MASKS, LAYOUTS):
        yield mask, layout, torch.float32, modes
    for mask, dtype in itertools.product(MASKS, (torch.float16, torch.bfloat16)):
        yield mask, "batch first", dtype, ("training", "inference")


def settings(layout: str) -> dict:
    return {"batch_first": layout == "batch first", "dropout": 0.0}


def layer_settings(layout: str, dtype: torch.dtype) -> dict:
    """relu where roundings do not decide on which side of its kink a number lies."""
    return {**settings(layout), "activation": "relu" if dtype == torch.float32 else "gelu"}


class Transformers(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(30)
        # Masks of two types, and layers that cannot take the fast path, are warned about.
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)

    def over(self, make, packs: bool = False) -> None:
        """Runs `make(mask, layout, dtype)` -> (module, inputs, masks) in all combinations."""
        for mask, layout, dtype, modes in combinations():
            case = Case(*make(mask, layout, dtype), dtype)
            packed = packs and layout == "batch first" and mask in ("padding", "float padding")
            for mode in modes:
                with self.subTest(mask=mask, layout=layout, dtype=dtype, mode=mode):
                    case.check(self, mode, packed)

    def test_multi_head_attention(self) -> None:
        for weights, average in ((False, True), (True, True), (True, False)):

            def make(mask, layout, dtype, weights=weights, average=average):
                batch = 1 if layout == "no batch" else BATCH
                options = {
                    "attn_mask": attention_mask(mask, KEYS, KEYS, batch),
                    "is_causal": mask == "causal",
                    "key_padding_mask": padding_mask(mask, KEYS, layout != "no batch"),
                    "need_weights": weights,
                    "average_attn_weights": average,
                }
                return (
                    nn.MultiheadAttention(WIDTH, HEADS, **settings(layout)),
                    sequences(layout, KEYS),
                    options,
                )

            with self.subTest(weights=weights, average=average):
                self.over(make)

    def test_attention_to_others(self) -> None:
        """Query, key and value of other lengths and sizes, with added keys: never the fast path."""

        def make(mask, layout, dtype):
            mask = "none" if mask == "causal" else mask
            batch = 1 if layout == "no batch" else BATCH
            query, key = sequences(layout, QUERIES, KEYS)
            module = nn.MultiheadAttention(
                WIDTH,
                HEADS,
                kdim=6,
                vdim=4,
                add_bias_kv=True,
                add_zero_attn=True,
                **settings(layout),
            )
            options = {
                "attn_mask": attention_mask(mask, QUERIES, KEYS, batch),
                "key_padding_mask": padding_mask(mask, KEYS, layout != "no batch"),
            }
            return module, [query, key[..., :6].contiguous(), key[..., 4:].contiguous()], options

        self.over(make)

    def encoder_masks(self, mask, layout):
        batch = 1 if layout == "no batch" else BATCH
        return {
            "is_causal": mask == "causal",
            "src_key_padding_mask": padding_mask(mask, KEYS, layout != "no batch"),
        }, attention_mask(mask, KEYS, KEYS, batch)

    def test_encoder_layer(self) -> None:
        for first in (False, True):

            def make(mask, layout, dtype, first=first):
                options, source = self.encoder_masks(mask, layout)
                module = nn.TransformerEncoderLayer(
                    WIDTH, HEADS, 12, norm_first=first, **layer_settings(layout, dtype)
                )
                return module, sequences(layout, KEYS), {**options, "src_mask": source}

            with self.subTest(norm_first=first):
                self.over(make)

    def test_encoder(self) -> None:
        def make(mask, layout, dtype):
            options, source = self.encoder_masks(mask, layout)
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 12, **layer_settings(layout, dtype))
            module = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(WIDTH))
            return module, sequences(layout, KEYS), {**options, "mask": source}

        self.over(make, packs=True)

    def decoder_masks(self, mask, layout):
        batch, batched = 1 if layout == "no batch" else BATCH, layout != "no batch"
        cross = "none" if mask == "causal" else mask
        return {
            "tgt_mask": attention_mask(mask, QUERIES, QUERIES, batch),
            "memory_mask": attention_mask(cross, QUERIES, KEYS, batch),
            "tgt_key_padding_mask": padding_mask(mask, QUERIES, batched),
            "memory_key_padding_mask": padding_mask(cross, KEYS, batched),
            "tgt_is_causal": mask == "causal",
        }

    def test_decoder(self) -> None:
        for deep in (False, True):

            def make(mask, layout, dtype, deep=deep):
                layer = nn.TransformerDecoderLayer(
                    WIDTH, HEADS, 12, norm_first=deep, **layer_settings(layout, dtype)
                )
                module = (
                    nn.TransformerDecoder(layer, 2, norm=nn.LayerNorm(WIDTH)) if deep else layer
                )
                return module, sequences(layout, QUERIES, KEYS), self.decoder_masks(mask, layout)

            with self.subTest(deep=deep):
                self.over(make)

    def test_transformer(self) -> None:
        def make(mask, layout, dtype):
            batch = 1 if layout == "no batch" else BATCH
            options = self.decoder_masks(mask, layout)
            options.update(
                src_mask=attention_mask(mask, KEYS, KEYS, batch),
                src_key_padding_mask=options["memory_key_padding_mask"],
                src_is_causal=mask == "causal",
            )
            module = nn.Transformer(WIDTH, HEADS, 1, 1, 12, **layer_settings(layout, dtype))
            return module, sequences(layout, KEYS, QUERIES), options

        self.over(make)

    def test_what_the_cpu_gives_without_gradients(self) -> None:
        """The fast path of both; a row without keys is NaN there."""
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 12, batch_first=True).eval()
        attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
        x, mask = (
            torch.randn(2, 5, WIDTH),
            torch.tensor([[False, False, True, False, True], [True] * 5]),
        )
        got = []
        with torch.inference_mode():
            for device in ("cpu", "ocl"):
                a, p = x.to(device), mask.to(device)
                layer, attention = layer.to(device), attention.to(device)
                got.append(
                    [layer(a, src_key_padding_mask=p), *attention(a, a, a, key_padding_mask=p)]
                )
        for theirs, ours in zip(*got, strict=True):
            self.assertTrue(theirs.isnan().any())
            torch.testing.assert_close(ours.cpu(), theirs, equal_nan=True, rtol=1e-5, atol=2e-6)

    def test_padded_sequences_are_packed(self) -> None:
        """As on the CPU: what the layers give is zero at the padding, before a last norm."""
        kinds = itertools.product((False, True), ("relu", "gelu"), (True, False))
        for last, activation, check in kinds:
            with self.subTest(last=last, activation=activation, check=check):
                layer = nn.TransformerEncoderLayer(
                    WIDTH, HEADS, 12, 0.0, activation, batch_first=True
                )
                x, mask = torch.randn(3, 5, WIDTH), torch.arange(5) >= torch.tensor([[5], [3], [1]])
                norm = nn.LayerNorm(WIDTH) if last else None
                encoder = nn.TransformerEncoder(layer, 2, norm, mask_check=check).eval()
                with torch.no_grad():
                    theirs = encoder(x, src_key_padding_mask=mask)
                    encoder.to("ocl")
                    ours = encoder(x.to("ocl"), src_key_padding_mask=mask.to("ocl")).cpu()
                self.assertTrue((theirs[mask] == theirs[mask][0]).all())
                torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-6)
                if norm is None:
                    self.assertTrue((ours[mask] == 0).all())

    def test_what_cannot_be_packed(self) -> None:
        """Padding in front: the layers get the mask. Nothing but padding, as on the CPU."""
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 12, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 2).eval()
        x, mask = torch.randn(2, 5, WIDTH), torch.arange(5) < torch.tensor([[0], [2]])
        with torch.no_grad():
            theirs = encoder(x, src_key_padding_mask=mask)
            encoder.to("ocl")
            ours = encoder(x.to("ocl"), src_key_padding_mask=mask.to("ocl")).cpu()
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-6)
        with self.assertRaisesRegex(RuntimeError, "left-aligned"):
            torch._nested_tensor_from_mask(x.to("ocl"), mask.logical_not().to("ocl"))

    def test_what_is_no_mask(self) -> None:
        attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).to("ocl")
        x = torch.ones(2, 5, WIDTH, device="ocl")

        def call(mask, kind) -> None:
            a = attention
            torch._native_multi_head_attention(
                x,
                x,
                x,
                WIDTH,
                HEADS,
                a.in_proj_weight,
                a.in_proj_bias,
                a.out_proj.weight,
                a.out_proj.bias,
                mask,
                mask_type=kind,
            )

        with torch.no_grad():
            for mask, kind, text in (
                (torch.ones(2, 5), None, "mask_type"),
                (torch.ones(2, 5), 3, "mask_type must be"),
                (torch.ones(5), 1, r"size \[N, S\]"),
                (torch.ones(2, 5).int(), 1, "bool or floating"),
            ):
                with self.subTest(text=text), self.assertRaisesRegex(RuntimeError, text):
                    call(mask.to("ocl"), kind)


if __name__ == "__main__":
    unittest.main()
