"""Scaled dot product attention: which kernels are permitted, and which can run."""

import contextlib
import warnings
from collections.abc import Iterator

import torch
from torch._C import _SDPAParams as SDPAParams

from torch_ocl import _C

_NO_FLASH = (
    "ocl has no flash kernel: its fused kernel keeps blocks of whole rows of scores "
    "(the memory-efficient scheme)"
)

# The switches are PyTorch's own, which torch.nn.attention.sdpa_kernel() sets, too.


def flash_sdp_enabled() -> bool:
    """Whether flash attention is permitted. Permits the fused kernel here."""
    return torch._C._get_flash_sdp_enabled()


def enable_flash_sdp(enabled: bool) -> None:
    """Permits flash attention, or not. The fused kernel is permitted if one of flash, mem_efficient
    and ``SDPBackend.OVERRIDEABLE`` is."""
    torch._C._set_sdp_use_flash(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention is permitted. Permits the fused kernel here."""
    return torch._C._get_mem_efficient_sdp_enabled()


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Permits memory-efficient attention, or not."""
    torch._C._set_sdp_use_mem_efficient(enabled)


def math_sdp_enabled() -> bool:
    """Whether attention composed of plain operators is permitted."""
    return torch._C._get_math_sdp_enabled()


def enable_math_sdp(enabled: bool) -> None:
    """Permits attention composed of plain operators, or not. A call that neither it nor the fused
    kernel may compute raises RuntimeError."""
    torch._C._set_sdp_use_math(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether attention composed of plain operators may keep 16-bit types between its steps."""
    return torch._C._get_math_sdp_allow_fp16_bf16_reduction()


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Permits 16-bit types between the steps; otherwise they are float32."""
    torch._C._set_math_sdp_allow_fp16_bf16_reduction(enabled)


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True
) -> Iterator[None]:
    """A context that permits some kinds of attention, as ``torch.nn.attention.sdpa_kernel`` does.

    With neither flash nor mem_efficient attention is not fused.
    """
    before = (
        flash_sdp_enabled(),
        math_sdp_enabled(),
        mem_efficient_sdp_enabled(),
        torch._C._get_overrideable_sdp_enabled(),
    )
    try:
        enable_flash_sdp(enable_flash)
        enable_math_sdp(enable_math)
        enable_mem_efficient_sdp(enable_mem_efficient)
        torch._C._set_sdp_use_overrideable(enable_flash or enable_mem_efficient)
        yield
    finally:
        enable_flash_sdp(before[0])
        enable_math_sdp(before[1])
        enable_mem_efficient_sdp(before[2])
        torch._C._set_sdp_use_overrideable(before[3])


def is_flash_attention_available() -> bool:
    """False: the fused kernel is a memory-efficient one. Scripts that ask for
    ``SDPBackend.FLASH_ATTENTION`` get that kernel."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False; with ``debug`` a warning says why."""
    if debug:
        warnings.warn(f"Flash attention cannot run: {_NO_FLASH}", stacklevel=2)
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether the fused kernel takes these arguments and is permitted.

    Args:
        params: ``SDPAParams(query, key, value, attn_mask, dropout, is_causal, enable_gqa)``
        debug: whether to warn with the reason if it cannot
    """
    reason = _C.attention_refusal(
        params.query,
        params.key,
        params.value,
        params.attn_mask,
        params.dropout,
        params.enable_gqa,
    )
    if reason:
        reason = f"it does not support {reason}"
    elif not mem_efficient_sdp_enabled():
        reason = "it is not permitted (mem_efficient_sdp_enabled() is False)"
    if reason and debug:
        warnings.warn(f"Memory-efficient attention cannot run: {reason}", stacklevel=2)
    return not reason
