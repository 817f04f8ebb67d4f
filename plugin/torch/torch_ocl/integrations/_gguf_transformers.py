"""transformers' GGUF files on ocl: weights stay packed, in its own modules, which multiply by
kernels that read them. Its loader knows three families of models; those of FAMILIES, which its
older one unpacks, are told to it in its own terms."""

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations import _device, _gguf
from torch_ocl.integrations._patch import Patch, module

GGUF = "transformers.integrations.gguf"
# Factors that transformers has from its own configuration.
UNUSED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


# ---- Families of models: what became of names and values when the file was written
PLAIN = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
EACH_HEAD = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
AROUND = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


EXPERTS = {
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
}


def _names(leaves: dict[str, str]) -> list[Any]:
    mapping = module(f"{GGUF}.gguf_conversion_mapping")
    return [mapping.WeightRenaming(rf"\.{leaf}\.", f".{name}.") for leaf, name in leaves.items()]


def _convert(name: str, operation: Any) -> Any:
    """Of weights whose names, as transformers has them, end with ``name``."""
    mapping = module(f"{GGUF}.gguf_conversion_mapping")
    return mapping.WeightConverter(
        source_patterns=name, target_patterns=name, operations=[operation]
    )


def _family(
    norms: dict[str, str], others: dict[str, str] | None = None, less: float = 0.0
) -> Callable[[Any], list[Any]]:
    """A decoder's names: of norms, to whose weights llama.cpp has added ``less``, and ``others``
    than usual."""

    def transforms(config: Any) -> list[Any]:
        mapping = module(f"{GGUF}.gguf_conversion_mapping")
        last = mapping.WeightRenaming(r"^output_norm\.", "model.norm.")
        found = _names(others or {}) + mapping.DENSE_DECODER_RENAMINGS + [last, *_names(norms)]
        if less:
            for name in ("model.norm", *norms.values()):
                found.append(_convert(f"{name}.weight", mapping.SubtractOne(less)))
        return found

    return transforms


def _experts_of(norms: dict[str, str]) -> Callable[[Any], list[Any]]:
    """A family whose layers have experts, one after another in a tensor, and one for all tokens."""

    def transforms(config: Any) -> list[Any]:
        mapping = module(f"{GGUF}.gguf_conversion_mapping")
        down = mapping.WeightRenaming(r"\.ffn_down_exps\.weight", ".mlp.experts.down_proj")
        up = mapping.WeightConverter(
            source_patterns=[r"\.ffn_gate_exps\.weight", r"\.ffn_up_exps\.weight"],
            target_patterns=".mlp.experts.gate_up_proj",
            operations=[mapping.ConcatenateRows(dim=1)],
        )
        gate = _convert("mlp.shared_expert_gate.weight", mapping.Unsqueeze(0, expected_ndim=2))
        return _family(norms, EXPERTS)(config) + [down, up, gate]

    return transforms


def _llama(config: Any) -> list[Any]:
    """Rows of queries and keys are in pairs, transformers has them in halves of a head."""
    mapping = module(f"{GGUF}.gguf_conversion_mapping")
    converters = []
    for name, heads in (("q", config.num_attention_heads), ("k", config.num_key_value_heads)):
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        rows = torch.arange(heads * head, device="cpu").view(heads, head // 2, 2).transpose(1, 2)
        for part in ("weight", "bias"):
            operation = mapping.PermuteRows(rows.reshape(-1))
            converters.append(_convert(f"self_attn.{name}_proj.{part}", operation))
    return _family(PLAIN)(config) + converters


FAMILIES = {
    "llama": _llama,
    "qwen2": _family(PLAIN),
    "qwen3": _family(PLAIN | EACH_HEAD),
    "qwen2moe": _experts_of(PLAIN),
    "qwen3moe": _experts_of(PLAIN | EACH_HEAD),
    "gemma2": _family(AROUND, less=1.0),
    "gemma3": _family(AROUND | EACH_HEAD, less=1.0),
    "phi3": _family(PLAIN, {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}),
    "stablelm": _family(PLAIN),
    "starcoder2": _family(PLAIN, {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}),
    "nemotron": _family(PLAIN, less=1.0),
}


# ---- Loading
class Kernel:
    """What transformers asks about: which types modules may keep."""

    def supports(self, ggml_type: int) -> bool:
        return ggml_type in _gguf.TYPES


def _goes_to_ocl(device_map: Any) -> bool:
    """Whether all of a model is to be on ocl, or all but what is on the CPU."""
    places = device_map.values() if isinstance(device_map, dict) else [device_map]
    types = set()
    for place in places:
        if place in ("auto", "balanced", "balanced_low_0", "sequential"):
            types.add("ocl" if _device.chosen() else "")
        elif isinstance(place, int):
            current = torch.accelerator.current_accelerator()
            types.add(current.type if current else "")
        else:
            types.add(torch.device(place).type if place not in (None, "disk") else "")
    return "ocl" in types and types <= {"ocl", "cpu"}


def _header(file: str) -> tuple[Any, str]:
    """A file's tensors, where the newer loader can be told of its family; else why not."""
    reader = module(f"{GGUF}.reader")
    try:
        found = reader.GgufHeader.from_file(file)
    except ValueError as error:  # a type that it does not know, as Q5_0, or no such file
        named = re.search(r"tensors of ggml type (\d+)", str(error))
        return None, f"type {named.group(1)}" if named else ""
    family, has_experts = found.architecture, any("_exps." in name for name in found.ggml_types)
    if family not in FAMILIES or has_experts and not family.endswith("moe"):
        return None, f"files of {family}" if found.has_quantized_weights else ""
    kinds = found.ggml_types
    gates = [name for name in kinds if "ffn_gate_exps" in name]
    if any(kinds[name] != kinds.get(name.replace("_gate_", "_up_")) for name in gates):
        return None, "gates and experts of several types"  # they become one tensor
    return found, ""


def quantizer_gguf(library: ModuleType, patch: Patch) -> None:
    kind = library.GgufHfQuantizer

    def update_device_map(old: Any) -> Any:
        def call(self: Any, device_map: Any) -> Any:
            device_map = old(self, device_map)
            chosen = _device.chosen()
            is_packed = not self.quantization_config.dequantize
            if device_map is None and chosen is not None and is_packed:
                device_map = {"": chosen}
            self.on_ocl = _goes_to_ocl(device_map) and is_packed
            return device_map

        return call

    def read_header(old: Any) -> Any:
        def call(self: Any, gguf_file: str) -> None:
            found, reason = _header(gguf_file) if getattr(self, "on_ocl", False) else (None, "")
            if found is not None:
                self.supported, self.header = True, found
                self.validate_environment()
                return
            old(self, gguf_file)
            if reason and not self.supported:
                _gguf.count_unpacked("transformers", reason)

        return call

    def validate_environment(old: Any) -> Any:
        def call(self: Any, *args: Any, **named: Any) -> None:
            ours = getattr(self, "on_ocl", False) and self.supported
            if not ours or not self.header.has_quantized_weights:
                old(self, *args, **named)
                return
            self.kernel = Kernel()
            self.attn_requested = True  # else attention is looked for in transformers' hub

        return call

    def update_dtype(old: Any) -> Any:
        def call(self: Any, dtype: Any) -> Any:
            if isinstance(self.kernel, Kernel) and dtype is not None:
                self.dtype = dtype  # without the advice to take float32: kernels read any
                return dtype
            return old(self, dtype)

        return call

    def get_state_dict(old: Any) -> Any:
        def call(self: Any, *args: Any, **named: Any) -> Any:
            found = old(self, *args, **named)
            if isinstance(self.kernel, Kernel):
                for name in UNUSED:
                    found.pop(name, None)
            return found

        return call

    for name, make in {
        "update_device_map": update_device_map,
        "read_header": read_header,
        "validate_environment": validate_environment,
        "update_dtype": update_dtype,
        "get_state_dict": get_state_dict,
    }.items():
        patch.replace(kind, name, make)


# ---- Modules
def _embedding(old: Any) -> Any:
    def forward(self: Any, input_ids: torch.Tensor) -> torch.Tensor:
        found = old(self, input_ids)
        scale = getattr(self, "scale", None)
        return found if scale is None else found * scale

    return forward


def _scaled(embedding: Any, ggml_type: int, dtype: Any) -> Any:
    """A packed table whose rows are multiplied with a number, as Gemma's are."""
    made = module(f"{GGUF}.utils").GgufEmbedding(
        embedding.num_embeddings, embedding.embedding_dim, ggml_type, dtype
    )
    scale = torch.tensor(embedding.scalar_embed_scale, device="cpu")
    made.scale = scale.to(made.compute_dtype).item()
    return made


def _replace_modules(old: Any) -> Any:
    """Tables with a scale are packed, too: else the layer that shares their weight would get
    floats. What cannot be packed is counted."""

    def replace(model: Any, plan: dict[str, int], kernel: Any, dtype: Any = None) -> Any:
        if not isinstance(kernel, Kernel):
            return old(model, plan, kernel, dtype)
        plan, scaled = dict(plan), {}
        for name, embedding in list(model.named_modules()):
            number = plan.get(f"{name}.weight")
            if not hasattr(embedding, "scalar_embed_scale") or not kernel.supports(number):
                continue
            made = _scaled(embedding, number, dtype)
            model.set_submodule(name, made)
            scaled[f"{name}.weight"] = made
        found = old(model, plan, kernel, dtype) | scaled
        names = module(f"{GGUF}.dequant").GGML_NAME
        for name, number in plan.items():
            if name not in found and number not in _gguf.TYPES:
                _gguf.count_unpacked("transformers", names.get(number, f"number {number}"))
        return found

    return replace


def _linear(old: Any) -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        kind = _gguf.TYPES.get(self.ggml_type)
        if x.device.type != "ocl" or kind is None or x.dtype not in _gguf.FLOATS:
            return old(self, x)
        flat = x.reshape(-1, self.in_features)
        if self.input_permutation is not None:
            flat = flat.index_select(1, self.input_permutation)
        out = _gguf.multiply(flat, self.weight, kind, self.bias)
        return out.reshape(*x.shape[:-1], self.out_features)

    return forward


def _unpack_rows(old: Any) -> Any:
    def chunk(
        weight: Any, ggml_type: int, rows: int, cols: int, dtype: Any, indices: Any = None
    ) -> torch.Tensor:
        if weight.device.type != "ocl":
            return old(weight, ggml_type, rows, cols, dtype, indices)
        kind = _gguf.TYPES.get(ggml_type)
        if kind is not None and dtype in _gguf.FLOATS:
            return _gguf.values(weight, kind, dtype, indices)
        if indices is not None:
            weight = weight.index_select(0, indices)
        return module(f"{GGUF}.dequant").dequantize(weight, ggml_type, dtype).reshape(rows, cols)

    return chunk


def _without_kernel(old: Any) -> Any:
    """A model that was moved from ocl to a device for which transformers has none."""

    def mul_mat_vec(
        weight: Any, x: torch.Tensor, ggml_type: int, out_features: int
    ) -> torch.Tensor:
        kernels = module(f"{GGUF}.kernels")
        if kernels._gguf_kernel:
            return old(weight, x, ggml_type, out_features)
        rows = kernels.dequantize_blocks(weight, ggml_type, out_features, x.shape[1], x.dtype)
        return x @ rows.T

    return mul_mat_vec


def _experts(old: Any) -> Any:
    """Each expert that was chosen multiplies its tokens: the host waits for the choice, once."""

    def mul_mat_id(
        blocks: Any, x: torch.Tensor, ids: torch.Tensor, ggml_type: int, out_features: int
    ) -> torch.Tensor:
        kernels = module(f"{GGUF}.kernels")
        kind = _gguf.TYPES.get(ggml_type) if blocks.device.type == "ocl" else None
        if kind is None and kernels._gguf_kernel:
            return old(blocks, x, ids, ggml_type, out_features)
        parts, places = [], []
        flat = ids.flatten().cpu()
        for expert in flat.unique().tolist():
            place = (flat == expert).nonzero().flatten()
            given = x[(place // ids.shape[1]).to(x.device)]
            if kind is not None:
                parts.append(_gguf.multiply(given, blocks[expert], kind))
            else:
                rows = kernels.dequantize_blocks(
                    blocks[expert], ggml_type, out_features, x.shape[1], x.dtype
                )
                parts.append(given @ rows.T)
            places.append(place)
        if not parts:
            return x.new_zeros(*ids.shape, out_features)
        order = torch.cat(places).argsort().to(x.device)
        return torch.cat(parts)[order].view(*ids.shape, out_features)

    return mul_mat_id


def _no_hub(old: Any) -> Any:
    def kernelize_ggml_layers(model: Any) -> None:
        if model.device.type != "ocl":  # whose layers nobody has published
            old(model)

    return kernelize_ggml_layers


def _mapping(old: Any) -> Any:
    def get_gguf_conversion_mapping(gguf_arch: str, config: Any) -> Any:
        known = module(f"{GGUF}.gguf_conversion_mapping").GGUF_ARCHS
        if gguf_arch in FAMILIES and gguf_arch not in known:
            return FAMILIES[gguf_arch](config)
        return old(gguf_arch, config)

    return get_gguf_conversion_mapping


# ---- Types that transformers' own operators do not unpack
def _five_bits(blocks: torch.Tensor, at: int) -> torch.Tensor:
    """Elements whose fifth bits are a word at ``at``, with the others behind it."""
    low = torch.cat([blocks[:, at + 4 :] & 15, blocks[:, at + 4 :] >> 4], 1)
    place = torch.arange(8, dtype=torch.uint8, device=blocks.device)
    upper = (blocks[:, at : at + 4, None] >> place & 1).reshape(low.shape)
    return (low | upper << 4).to(torch.int8)


def _half(blocks: torch.Tensor, at: int, dtype: torch.dtype) -> torch.Tensor:
    return blocks[:, at : at + 2].view(torch.float16).to(dtype)


def _q5_0(blocks: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return _half(blocks, 0, dtype) * (_five_bits(blocks, 2) - 16)


def _q5_1(blocks: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return _half(blocks, 0, dtype) * _five_bits(blocks, 4) + _half(blocks, 2, dtype)


def _add_types(patch: Patch) -> None:
    """Those that kernels read, to the tables by which files are read, and models unpacked that were
    moved to the CPU."""
    dequant = module(f"{GGUF}.dequant")
    for number, unpack in ((6, _q5_0), (7, _q5_1)):
        kind = _gguf.TYPES[number]
        patch.add_item(dequant.GGML_BLOCK, number, (kind.elements, kind.bytes))
        patch.add_item(dequant.GGML_NAME, number, kind.format.upper())
        patch.add_item(dequant._DEQUANT, number, unpack)


def gguf_utils(library: ModuleType, patch: Patch) -> None:
    """Modules, and what they call."""
    kernels = module(f"{GGUF}.kernels")
    _add_types(patch)
    patch.replace(library, "replace_with_gguf_modules", _replace_modules)
    patch.replace(library, "get_gguf_conversion_mapping", _mapping)
    patch.replace(library.GgufLinear, "forward", _linear)
    patch.replace(library.GgufEmbedding, "forward", _embedding)
    patch.replace(kernels, "_dequantize_chunk", _unpack_rows)
    patch.replace(kernels, "mul_mat_vec", _without_kernel)
    patch.replace(kernels, "mul_mat_id", _experts)
    patch.replace(kernels, "kernelize_ggml_layers", _no_hub)
