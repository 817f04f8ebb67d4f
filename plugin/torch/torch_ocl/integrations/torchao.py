"""torchao: layers with quantised weights are one product, which reads the weight as it is kept;
weights of 4 bits can be made on ocl. Layouts without kernels stay with torchao's own operators."""

import types
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakIdKeyDictionary

from torch_ocl.integrations._patch import Patch, module

WORKFLOWS = "torchao.quantization.quantize_.workflows"
TYPES = (torch.float32, torch.float16, torch.bfloat16)


class Packed(NamedTuple):
    """A weight as torch.ops.ocl.quantised_mm takes it."""

    data: torch.Tensor
    scale: torch.Tensor
    zero: torch.Tensor | None
    format: str
    group: int
    rows: int
    """Those behind the weight's own are padding, as are columns."""
    columns: int


def _group_of(block: Any, columns: int) -> int | None:
    """The elements along K that share a scale in blocks of one row, if kernels know such groups."""
    if len(block) != 2 or block[0] != 1:
        return None
    group = block[1]
    known = group == columns or (group >= 32 and group & (group - 1) == 0)
    return group if known else None


def _int8(w: Any) -> Packed | None:
    """Of groups zeros count, as in ``dequantize``; of rows and of all torchao leaves them out."""
    n, k = w.qdata.shape[-2:]
    if w.qdata.dim() != 2 or w.act_quant_kwargs is not None:
        return None
    if w.block_size[-1] >= k:
        scale = w.scale.reshape(-1, 1)
        return Packed(w.qdata, scale, None, "int8", k, n, k) if len(scale) in (1, n) else None
    group = _group_of(w.block_size, k)
    if group is None:
        return None
    kind = "int8" if w.zero_point is None else "int8_zeros"
    return Packed(w.qdata, w.scale, w.zero_point, kind, group, n, k)


def _intx(w: Any) -> Packed | None:
    n, k = w.qdata.shape[-2:]
    group = _group_of(w.block_size, k)
    if group is None:
        return None
    return Packed(w.qdata, w.scale, w.zero_point, "int8_zeros", group, n, k)


FLOAT8 = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}


def _float8(w: Any) -> Packed | None:
    """A scale for all or each row. What was transposed is not in rows."""
    if w.act_quant_kwargs is not None or w.qdata.dim() != 2 or not w.qdata.is_contiguous():
        return None
    n, k = w.qdata.shape
    kind = FLOAT8.get(w.qdata.dtype)
    if kind is None or tuple(w.scale.shape) not in ((n, 1), (1, 1)):
        return None
    return Packed(w.qdata, w.scale, None, kind, k, n, k)


def _int4(w: Any) -> Packed | None:
    """``q * scale + zero``, q from -8 to 7."""
    if w.qdata.dim() != 2 or w.activation_dtype != torch.bfloat16:
        return None
    n, k = w.shape
    group = _group_of(w.block_size, k)
    if group is None:
        return None
    return Packed(w.qdata, w.scale.t(), w.zero_point.t(), "int4_signed", group, n, k)


def _int4_plain_int32(w: Any) -> Packed | None:
    n, k = w.shape
    group = _group_of(w.block_size, k)
    if group is None:
        return None
    return Packed(w.qdata, w.scale.t(), w.zero_point.t(), "int4", group, n, k)


def _int4_tiles(w: Any) -> Packed | None:
    if w.qdata.dim() != 4:
        return None
    n, k = 8 * w.qdata.shape[0], 128 * w.qdata.shape[1]
    group = _group_of(w.block_size, k)
    if group is None:
        return None
    scale, zero = (part.t() for part in w.scale_and_zero.unbind(2))
    return Packed(w.qdata, scale, zero, "int4_tiles", group, n, k)


_scales = WeakIdKeyDictionary()


def _nf4_scales(w: Any) -> torch.Tensor:
    """Scales of 8 bits are unpacked once, as long as their bytes are not written to: in blocks of
    64 that is a sixteenth of a weight of 16 bits."""
    kept = w.quantized_scalers
    if kept.is_inference():  # has no count of writes
        return w.dequantize_scalers(kept, w.quantization_factor, w.scaler_block_size)
    version = (kept._version, w.quantization_factor._version, w.scaler_mean._version, w.dtype)
    known = _scales.get(kept)
    if known is None or known[0] != version:
        made = w.dequantize_scalers(kept, w.quantization_factor, w.scaler_block_size)
        known = _scales[kept] = (version, made)
    return known[1]


def _nf4(w: Any) -> Packed | None:
    """Codes are those of the weight's type."""
    block = w.block_size
    if w.dim() != 2 or not w.is_contiguous() or block < 32 or block & (block - 1):
        return None
    n, k = w.shape
    with torch.no_grad():
        return Packed(w.quantized_data, _nf4_scales(w), w.nf4, "codes", block, n, k)


def _multiply(x: torch.Tensor, packed: Packed, bias: torch.Tensor | None, n: int) -> torch.Tensor:
    """What torchao pads is padded here, too, and cut off."""
    if packed.columns != x.shape[-1]:
        x = torch.nn.functional.pad(x, (0, packed.columns - x.shape[-1]))
    whole = packed.rows == n
    given = bias.to(x.dtype) if bias is not None and whole else None
    y = torch.ops.ocl.quantised_mm(
        x, packed.data, packed.scale, packed.zero, given, packed.format, packed.rows, packed.group
    )
    if whole:
        return y
    y = y[..., :n]
    return y if bias is None else y + bias.to(y.dtype)


def _linear(
    x: torch.Tensor,
    w: Any,
    bias: torch.Tensor | None,
    find: Callable[[Any], Packed | None],
    prepare: Callable[[torch.Tensor, Any], torch.Tensor] | None,
) -> torch.Tensor | None:
    """The layer, or None where torchao's own operators compute it."""
    if type(x) not in (torch.Tensor, torch.nn.Parameter) or x.device.type != "ocl":
        return None
    if x.dtype not in TYPES or w.dim() != 2 or x.dim() == 0:
        return None
    if x.shape[-1] != w.shape[1]:
        raise RuntimeError(
            f"linear: expected x of shape [..., {w.shape[1]}] for a {type(w).__name__} of shape"
            f" {list(w.shape)}, got {list(x.shape)}"
        )
    packed = find(w)
    # What was loaded with map_location keeps the name of the device that it was saved from.
    if packed is None or packed.data.device != x.device:
        return None
    before = getattr(w, "act_pre_scale", None)
    if before is not None:
        x = x * before
    if prepare is not None:
        x = prepare(x, w)
    return _multiply(x, packed, bias, w.shape[0])


def _in_front(find: Any, prepare: Any = None) -> Callable[[Any], Any]:
    """Of an entry of TorchAOBaseTensor's tables."""

    def make(old: Callable[..., Any]) -> Callable[..., Any]:
        def call(func: Any, classes: Any, args: Any, kwargs: Any) -> Any:
            bias = args[2] if len(args) > 2 else (kwargs or {}).get("bias")
            y = _linear(args[0], args[1], bias, find, prepare) if len(args) > 1 else None
            return old(func, classes, args, kwargs) if y is None else y

        return call

    return make


def _nf4_in_front(old: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        y = _linear(args[0], args[1], bias, _nf4, None) if len(args) > 1 else None
        return old(*args, **kwargs) if y is None else y

    return call


# ---- Weights of 4 bits made on ocl
def _row_quantize(old: Callable[..., Any] | None) -> Callable[..., Any]:
    """mslk's ``int4_row_quantize_zp``: numbers [N, K] of int8 from -8 to 7, scales and zeros
    [K / group, N], so that a group's least and largest values are -8 and 7."""

    def int4_row_quantize_zp(x: torch.Tensor, group_size: int = 128) -> Any:
        if x.device.type != "ocl":
            if old is None:
                raise ImportError("Requires mslk >= 1.0.0")
            return old(x, group_size)
        groups = x.reshape(len(x), -1, group_size).float()
        least, most = groups.aminmax(dim=-1)
        scale = (most - least).clamp(min=1e-6) / 15
        q = ((groups - least[..., None]) / scale[..., None]).round().clamp(0, 15) - 8
        zero = least + 8 * scale
        return q.to(torch.int8).view(x.shape), scale.t().contiguous(), zero.t().contiguous()

    return int4_row_quantize_zp


def _pack_int4(old: Callable[..., Any] | None) -> Callable[..., Any]:
    """mslk's ``pack_int4``: the even element of each pair in the low nibble."""

    def pack_int4(q: torch.Tensor) -> torch.Tensor:
        if q.device.type != "ocl":
            if old is None:
                raise ImportError("Requires mslk >= 1.0.0")
            return old(q)
        return (q[..., ::2] & 15 | q[..., 1::2] << 4).contiguous()

    return pack_int4


def _plain_from_hp(old: classmethod) -> classmethod:
    """As for XPU; bytes are kept in the order of elements, which XPU's operator packs to."""

    def from_hp(cls: Any, w: torch.Tensor, block_size: Any) -> Any:
        if w.device.type != "ocl":
            return old.__func__(cls, w, block_size)
        if w.dim() != 2 or w.dtype not in (torch.float16, torch.bfloat16):
            raise ValueError(
                "Int4PlainInt32Tensor: expected a matrix of float16 or bfloat16, got"
                f" {w.dtype} {list(w.shape)}"
            )
        if w.shape[1] % 8 != 0:
            raise ValueError(f"Int4PlainInt32Tensor: K = {w.shape[1]} is no multiple of 8")
        primitives = module("torchao.quantization.quant_primitives")
        limits = (torch.int32, 0, 15)
        scale, zero = primitives.choose_qparams_affine(
            w, primitives.MappingType.ASYMMETRIC, block_size, *limits, 1e-6, None, torch.int32
        )
        q = primitives.quantize_affine(w, block_size, scale, zero, *limits)
        data = (q[:, 1::2] << 4 | q[:, ::2]).to(torch.uint8).contiguous().view(torch.int32)
        scale, zero = (t.reshape(len(w), -1).t().contiguous() for t in (scale, zero))
        return cls(data, scale, zero.to(torch.int8), block_size, w.shape, act_pre_scale=None)

    return classmethod(from_hp)


class _Capable:
    """torch, whose CUDA device has matrix units: what torchao asks before it packs tiles."""

    cuda = SimpleNamespace(get_device_capability=lambda: (8, 0))

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _tiles_from_hp(old: classmethod) -> classmethod:
    written = old.__func__
    ours = types.FunctionType(
        written.__code__,
        {**written.__globals__, "torch": _Capable()},
        written.__name__,
        written.__defaults__,
        written.__closure__,
    )
    ours.__kwdefaults__ = written.__kwdefaults__

    def from_hp(cls: Any, hp_tensor: torch.Tensor, *args: Any, **named: Any) -> Any:
        make = ours if hp_tensor.device.type == "ocl" else written
        return make(cls, hp_tensor, *args, **named)

    return classmethod(from_hp)


def _fake_activations(x: torch.Tensor, w: Any) -> torch.Tensor:
    """What torchao does to x before an intx layer with activations of 8 bits."""
    if w.activation_quantization is None:
        return x
    return module(f"{WORKFLOWS}.intx.{INTX}")._apply_int8_act_asym_per_token_quant_dequant(x)


INTX = "intx_unpacked_to_int8_tensor"
LAYERS = (
    ("int8.int8_tensor", "Int8Tensor", _int8, None),
    (f"intx.{INTX}", "IntxUnpackedToInt8Tensor", _intx, _fake_activations),
    ("float8.float8_tensor", "Float8Tensor", _float8, None),
    ("int4.int4_tensor", "Int4Tensor", _int4, None),
    ("int4.int4_plain_int32_tensor", "Int4PlainInt32Tensor", _int4_plain_int32, None),
    ("int4.int4_tile_packed_to_4d_tensor", "Int4TilePackedTo4dTensor", _int4_tiles, None),
)


def torchao(library: ModuleType, patch: Patch) -> None:
    """Changes the whole library, when ``import torchao`` ends."""
    linear = torch.nn.functional.linear
    for file, name, find, prepare in LAYERS:
        kind = getattr(module(f"{WORKFLOWS}.{file}"), name)
        make = _in_front(find, prepare)
        patch.replace_item(kind._ATEN_OP_TABLE[kind], torch.ops.aten.linear.default, make)
        patch.replace_item(kind._TORCH_FN_TABLE[kind], linear, make)
    nf4 = module(f"{WORKFLOWS}.nf4.nf4_tensor")
    patch.replace_item(nf4.NF4_TORCH_FUNCTIONS, linear, _nf4_in_front)
    plain = module(f"{WORKFLOWS}.int4.int4_tensor")
    for name, make in {"int4_row_quantize_zp": _row_quantize, "pack_int4": _pack_int4}.items():
        patch.set(plain, name, make(getattr(plain, name)))
    words = module(f"{WORKFLOWS}.int4.int4_plain_int32_tensor").Int4PlainInt32Tensor
    patch.replace(words, "from_hp", _plain_from_hp)
    tiles = module(f"{WORKFLOWS}.int4.int4_tile_packed_to_4d_tensor").Int4TilePackedTo4dTensor
    patch.replace(tiles, "from_hp", _tiles_from_hp)


APPLY = {"torchao": torchao}
