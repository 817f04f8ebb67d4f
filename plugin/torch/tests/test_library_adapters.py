"""LoRA by peft on layers with quantised weights of bitsandbytes and torchao on ocl: gradients of
adapters against float64's for the weights that are kept, unpacked by numpy; copies and files."""

import copy
import unittest

import numpy as np
import torch
from library_case import Case, needs, quiet
from quantised_weights import values  # of tests/oracle, which library_case finds
from test_quantised_models import batch, loss_of, trained


def lora(model: torch.nn.Module) -> torch.nn.Module:
    """Adapters of rank 4, of which the second matrix is not zero."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, lora_alpha=8, target_modules=["qkv", "out", "up", "down"])
    with quiet():
        made = get_peft_model(model, config)
    torch.manual_seed(7)
    for name, p in made.named_parameters():
        if "lora_" in name:
            p.data.copy_(torch.randn(p.shape) / p.shape[1] ** 0.5)
    return made


def bits_of_bitsandbytes(kind: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The trained model with layers of bitsandbytes on ocl, and their weights in float64."""
    with quiet():
        import bitsandbytes as bnb
        from bitsandbytes import functional as bnb_functional

    model, weights = trained(), {}
    for name, layer in list(model.named_modules()):
        if type(layer) is not torch.nn.Linear or name == "head":
            continue
        made = bnb.nn.Linear4bit(
            layer.in_features, layer.out_features, compute_dtype=torch.float32, quant_type=kind
        )
        made.load_state_dict(layer.state_dict())
        model.set_submodule(name, made)
    model.to("ocl")
    for name, layer in model.named_modules():
        if isinstance(layer, bnb.nn.Linear4bit):
            state, (n, k) = layer.weight.quant_state, (layer.out_features, layer.in_features)
            scales = state.absmax
            if state.nested:
                scales = bnb_functional.dequantize_blockwise(scales, state.state2) + state.offset
            raw = layer.weight.data.view(torch.uint8).cpu().numpy()
            found = values(kind, raw, n, k, state.blocksize, scales.flatten().cpu().numpy())
            weights[name] = torch.from_numpy(np.ascontiguousarray(found))
    return model, weights


def bits_of_torchao(kind: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The same with torchao's layers."""
    from test_library_torchao import unpacked as unpacked_by_numpy
    from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

    if kind == "int8":
        config = Int8WeightOnlyConfig()
    else:  # in a layout that peft lets through
        config = Int4WeightOnlyConfig(group_size=32, int4_packing_format="plain_int32")
    model = trained().to("ocl")
    if kind == "int4":  # made of 16 bits; activations stay float32
        for layer in model.blocks.modules():
            if type(layer) is torch.nn.Linear:
                layer.half()
    with quiet():
        quantize_(model, config, lambda m, name: type(m) is torch.nn.Linear and name != "head")
    weights = {
        name: unpacked_by_numpy(layer.weight)
        for name, layer in model.named_modules()
        if type(layer) is torch.nn.Linear and name != "head"
    }
    return model, weights


class Adapters(Case):
    def compare(self, made: tuple[torch.nn.Module, dict[str, torch.Tensor]]) -> None:
        """Gradients of all adapters; the same bits in a copy, a file, and by the adapters' file."""
        import peft

        model, weights = made
        self.assertEqual(len(weights), 8)
        theirs = trained().double()
        for name, weight in weights.items():
            layer = theirs.get_submodule(name)
            layer.weight.data.copy_(weight)
            layer.bias.data.copy_(model.get_submodule(name).bias)
        ours, theirs = lora(model).float(), lora(theirs)
        named = {n: p for n, p in ours.named_parameters() if "lora_" in n}
        for name, p in named.items():
            theirs.get_parameter(name).data.copy_(p.data)
        for found in (ours, theirs):
            loss_of(found, *batch(3)).backward()
        self.assertEqual(len(named), 16)
        for name, p in named.items():
            want = theirs.get_parameter(name).grad
            self.assertGreater(want.abs().max().item(), 1e-4)
            with self.subTest(name):
                # Float32 sums of two layers and 512 letters.
                self.near(p.grad, want, 1e-4 * want.abs().max().item())
        with torch.no_grad():
            ids = batch(3)[0].to("ocl")
            first = ours(ids).cpu()
            self.assertTrue(torch.equal(ours(ids).cpu(), first))
            self.assertTrue(torch.equal(copy.deepcopy(ours)(ids).cpu(), first))
            ours.save_pretrained(self.folder / "adapters")
            self.assertTrue(torch.equal(self.from_a_file(ours)(ids).cpu(), first))
            bare = ours.unload()
            with quiet():
                again = peft.PeftModel.from_pretrained(bare, self.folder / "adapters")
            self.assertTrue(torch.equal(again(ids).cpu(), first))

    def from_a_file(self, model: torch.nn.Module) -> torch.nn.Module:
        """torchao's layers cannot be pickled, as they hold functions: their tensors are."""
        path = self.folder / "model.pt"
        if any(type(m).__name__ == "Linear4bit" for m in model.modules()):
            torch.save(model, path)
            return torch.load(path, weights_only=False)
        torch.save(model.state_dict(), path)
        other = copy.deepcopy(model)
        for name, p in other.named_parameters():
            if "lora_" in name or "norm" in name:
                p.zero_()
        other.load_state_dict(torch.load(path, map_location="ocl", weights_only=False))
        return other

    @needs("bitsandbytes", "peft")
    def test_nf4(self) -> None:
        self.compare(bits_of_bitsandbytes("nf4"))

    @needs("torchao", "peft")
    def test_int8(self) -> None:
        self.compare(bits_of_torchao("int8"))

    @needs("torchao", "peft")
    def test_int4(self) -> None:
        self.compare(bits_of_torchao("int4"))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
