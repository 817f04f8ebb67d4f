"""GGUF files on ocl, by transformers and diffusers: weights stay packed and are multiplied as they
are; what has no kernel is unpacked, said once and counted."""

import copy
import gc
import unittest
import warnings
from unittest import mock

import numpy as np
import torch
from gguf_case import (
    VOCABULARY,
    WITH_KERNELS,
    File,
    blocks,
    float64,
    hybrid_model,
    language_model,
    load,
)
from gpu_style import IS_GPU_STYLE, InGpuStyle, of_operators, of_style
from library_case import Case, applied, needs, quiet
from test_command_counts import commands
from torch_ocl.integrations import _gguf

TIED = ("qwen2", "gemma2", "gemma3")
FAMILIES = (
    "llama", "mistral", "qwen2", "qwen3", "qwen2moe", "qwen3moe", "gemma2", "gemma3", "phi3",
    "stablelm", "starcoder2", "nemotron",
)  # fmt: skip
HYBRIDS = ("lfm2", "qwen35")
IDS = torch.arange(1, 11).view(1, 10) * 7


def greedy(model: torch.nn.Module, count: int) -> list[int]:
    ids = IDS.to(model.device)
    return model.generate(ids, max_new_tokens=count, do_sample=False, pad_token_id=0)[0].tolist()


@needs("gguf")
class Oracle(Case):
    def test_its_values_are_those_of_ggufs_package(self) -> None:
        """Which computes in float32, three operations at most."""
        import gguf

        for kind in WITH_KERNELS:
            with self.subTest(kind):
                data = blocks(kind, 37, 512, np.random.default_rng(4), 1.0)
                want = gguf.dequantize(data, gguf.GGMLQuantizationType[kind])
                got = float64(kind, data)
                most = got.abs().max().item()
                self.assertGreater(most, 1)
                off = (got - torch.from_numpy(want).double()).abs().max().item()
                self.assertLess(off, 3 * 2**-23 * most)


@needs("gguf", "transformers", "accelerate")
class Transformers(InGpuStyle, Case):
    OPTIMISED = False

    def layers(self, model: torch.nn.Module) -> dict[str, torch.nn.Module]:
        """All that have weights of two dimensions and more, but for what chooses experts."""
        found = {}
        for name, layer in model.named_modules():
            parts = dict(layer.named_parameters(recurse=False)).values()
            if any(p.dim() > 1 for p in parts) and not name.endswith(("gate", "conv", "conv1d")):
                found[name] = layer
        return found

    @of_operators
    def test_families(self) -> None:
        """Logits and tokens are those of the loader that unpacks, on the CPU; all layers together
        have as many bytes as the file, and what is named alike has its bytes."""
        torch.manual_seed(0)
        for family in (*FAMILIES, *HYBRIDS):
            with self.subTest(family):
                path = self.folder / f"{family}.gguf"
                if family in HYBRIDS:
                    file = hybrid_model(path, family)
                else:
                    file = language_model(path, family, tied=family in TIED)
                got, unpacked = load(path, "ocl"), path
                applied(self, "transformers")
                if family == "mistral":  # whose name the older loader does not find
                    unpacked = self.folder / "as_llama.gguf"
                    language_model(unpacked, "llama")
                want = load(unpacked, "cpu")
                self.assertEqual(type(want.lm_head), torch.nn.Linear)
                kinds = {type(m).__name__ for m in self.layers(got).values()}
                self.assertLessEqual(kinds, {"GgufLinear", "GgufEmbedding", "GgufExperts"})
                packed = [p for p in got.parameters() if p.dtype == torch.uint8]
                size = sum(data.nbytes for _, data in file.weights.values())
                self.assertEqual(sum(p.numel() for p in packed), size)
                for name, ours in (("attn_v", "self_attn.v_proj"), ("ffn_down", "mlp.down_proj")):
                    if (data := file.weights.get(f"blk.1.{name}.weight")) is not None:
                        kept = dict(got.named_parameters()).get(f"model.layers.1.{ours}.weight")
                        if kept is not None:
                            self.assertTrue(np.array_equal(kept.cpu().numpy(), data[1]))
                if family in ("llama", "mistral"):  # queries and keys have other rows first
                    queries = got.model.layers[0].self_attn.q_proj.weight.cpu()
                    data = torch.from_numpy(file.weights["blk.0.attn_q.weight"][1])
                    data = data.view(2, 64, 2, -1).transpose(1, 2).reshape(data.shape)
                    self.assertTrue(torch.equal(queries, data))
                with torch.no_grad():
                    logits = want(IDS).logits
                    self.assertGreater(logits.std().item(), 0.1)
                    # Two layers' float32 sums of 512 products.
                    self.near(got(IDS.to("ocl")).logits, logits, 2e-4 * logits.abs().max().item())
                self.assertEqual(greedy(got, 6), greedy(want, 6))

    @of_operators
    def test_without_a_device_map_it_is_on_ocl(self) -> None:
        path = self.folder / "m.gguf"
        language_model(path, "qwen2")
        model = load(path, None)
        self.assertEqual(model.device.type, "ocl")
        self.assertEqual(type(model.lm_head).__name__, "GgufLinear")
        self.assertEqual(type(load(path, "cpu").lm_head), torch.nn.Linear)

    @of_operators
    def test_sixteen_bits(self) -> None:
        path = self.folder / "m.gguf"
        language_model(path, "llama")
        want = load(path, "cpu", dtype=torch.float32)
        with torch.no_grad():
            logits = want(IDS).logits
            for dtype, eps in ((torch.bfloat16, 2**-8), (torch.float16, 2**-11)):
                model = load(path, "ocl", dtype=dtype)
                self.assertEqual(model.lm_head.weight.dtype, torch.uint8)
                self.assertEqual(model(IDS.to("ocl")).logits.dtype, dtype)
                off = (model(IDS.to("ocl")).logits.cpu() - logits).std() / logits.std()
                # About twenty roundings of activations, one after another.
                self.assertLess(off.item(), 20 * eps)

    @of_operators
    def test_memory_of_loading(self) -> None:
        """At no time more than the file's bytes are on the device: its weights come one after
        another, and none is unpacked."""
        path = self.folder / "m.gguf"
        language_model(path, "llama", "Q4_K Q6_K")
        load(path, "ocl", dtype=torch.bfloat16)  # what is made once
        torch.ocl.synchronize()
        gc.collect()
        torch.ocl.reset_peak_memory_stats()
        before = torch.ocl.memory_allocated()
        model = load(path, "ocl", dtype=torch.bfloat16)
        torch.ocl.synchronize()
        peak = torch.ocl.max_memory_allocated() - before
        # Tables of positions, and 512 bytes for each of the small tensors.
        self.assertLess(peak, 1.1 * path.stat().st_size)
        kept = torch.ocl.memory_allocated() - before
        self.assertLess(peak, 1.1 * kept)
        self.assertEqual(model(torch.tensor([[1, 2]], device="ocl")).logits.shape[1], 2)

    def test_one_launch_a_layer(self) -> None:
        path = self.folder / "m.gguf"
        language_model(path, "qwen2")
        layer = load(path, "ocl").model.layers[0].self_attn.q_proj
        x = torch.randn(1, 1, 256, device="ocl")
        with torch.no_grad():
            self.assertEqual(commands(lambda: layer(x)), 1)

    @of_operators
    def test_moved_copied_and_saved(self) -> None:
        """The same bits after a way to the CPU and back, in copies, and in what is saved."""
        path = self.folder / "m.gguf"
        language_model(path, "gemma3", tied=True)
        model = load(path, "ocl")
        ids = IDS.to("ocl")
        with torch.no_grad():
            first = model(ids).logits.cpu()
            other = copy.deepcopy(model)
            self.assertTrue(torch.equal(other(ids).logits.cpu(), first))
            model.to("cpu")
            self.near(model(IDS).logits, first, 2e-4 * first.abs().max().item())
            model.to("ocl")
            self.assertTrue(torch.equal(model(ids).logits.cpu(), first))
            state = model.state_dict()
            torch.save(state, self.folder / "state.pt")
            for p in other.parameters():
                p.zero_()
            kept = torch.load(self.folder / "state.pt", map_location="cpu", weights_only=True)
            other.load_state_dict(kept)
            self.assertTrue(torch.equal(other(ids).logits.cpu(), first))

    @of_operators
    def test_gradients(self) -> None:
        """Of the inputs, as of a prompt that is learnt: those of the unpacked model."""
        path = self.folder / "m.gguf"
        language_model(path, "llama")
        found = []
        for device in ("cpu", "ocl"):
            model = load(path, device)
            x = model.get_input_embeddings()(IDS.to(device)).detach().requires_grad_()
            model(inputs_embeds=x).logits.logsumexp(-1).sum().backward()
            found.append(x.grad)
        self.near(found[1], found[0], 1e-3 * found[0].abs().max().item())

    @of_operators
    def test_types_without_kernels(self) -> None:
        """One layer's weight is unpacked when it is loaded, the others stay; a file that only the
        older loader reads is unpacked whole. Both are counted."""
        for kinds, key, whole in (("Q4_K IQ3_S", "IQ3_S", False), ("Q4_K TQ1_0", "type 34", True)):
            with self.subTest(kinds):
                path = self.folder / "m.gguf"
                language_model(path, "qwen3", kinds=kinds)
                before = torch.ocl.unpacked_counts().get(f"transformers {key}", 0)
                model = load(path, "ocl")
                after = torch.ocl.unpacked_counts().get(f"transformers {key}", 0)
                self.assertGreater(after, before)
                types = [type(m).__name__ for m in self.layers(model).values()]
                self.assertEqual("GgufLinear" in types, not whole)
                self.assertIn("Linear", types)
                with torch.no_grad():
                    want = load(path, "cpu")(IDS).logits
                    # Unpacked in float32 by other operators than gguf's.
                    got = model(IDS.to("ocl")).logits
                    self.near(got, want, 1e-3 * want.abs().max().item())

    def test_experts(self) -> None:
        """Tokens of some experts; one of them has none."""
        from transformers.integrations.gguf.utils import GgufExperts

        draw = np.random.default_rng(3)
        experts = GgufExperts(5, 256, 512, 12, 14, torch.nn.functional.silu)
        up = [blocks("Q4_K", 1024, 256, draw, 0.06) for _ in range(5)]
        down = [blocks("Q6_K", 256, 512, draw, 0.06) for _ in range(5)]
        experts.gate_up_proj.data.copy_(torch.from_numpy(np.stack(up)))
        experts.down_proj.data.copy_(torch.from_numpy(np.stack(down)))
        x, ids = torch.randn(7, 256), torch.randint(0, 4, (7, 2))
        part = torch.rand(7, 2)
        want = torch.zeros(7, 256, dtype=torch.float64)
        for token in range(7):
            for place in range(2):
                chosen = ids[token, place]
                gate = float64("Q4_K", up[chosen]) @ x[token].double()
                inner = torch.nn.functional.silu(gate[:512]) * gate[512:]
                want[token] += part[token, place] * (float64("Q6_K", down[chosen]) @ inner)
        for device in ("ocl", "cpu"):
            experts.to(device)
            got = experts(x.to(device), ids.to(device), part.to(device))
            self.near(got, want, 1e-5 * want.abs().max().item())


@needs("gguf", "diffusers", "accelerate")
class Diffusers(InGpuStyle, Case):
    OPTIMISED = False

    def layer(self, kind: str, dtype: torch.dtype) -> tuple[torch.nn.Module, np.ndarray]:
        from diffusers.quantizers.gguf.utils import GGUFLinear, GGUFParameter, gguf

        n, k = 37, 512
        if kind == "BF16":
            data = (torch.randn(n, k) / 20).bfloat16().view(torch.uint8).numpy()
        else:
            data = blocks(kind, n, k, np.random.default_rng(2), 0.05)
        made = GGUFLinear(k, n, bias=True, compute_dtype=dtype)
        given = torch.from_numpy(data.copy())
        made.weight = GGUFParameter(given, quant_type=gguf.GGMLQuantizationType[kind])
        return made.requires_grad_(False).to("ocl"), data

    def values(self, kind: str, data: np.ndarray) -> torch.Tensor:
        if kind == "BF16":
            return torch.from_numpy(data).view(torch.bfloat16).double()
        return float64(kind, data)

    def test_layers(self) -> None:
        """Each type and type of activations against float64; gradients of x."""
        torch.manual_seed(1)
        others = () if IS_GPU_STYLE else ("BF16",)  # made of other operators
        for kind in (*WITH_KERNELS, *others):
            for dtype in of_style((torch.float16, torch.bfloat16, torch.float32)):
                for rows in (1, 12):
                    with self.subTest(kind, dtype=dtype, rows=rows), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        layer, data = self.layer(kind, dtype)
                        weight = self.values(kind, data)
                        x = torch.randn(2, rows, 512).to(dtype)
                        given = x.to("ocl").requires_grad_()
                        y = layer(given)
                        self.assertEqual(y.dtype, dtype)
                        bias = layer.bias.cpu().double()
                        want = x.double() @ weight.T + bias
                        # Products of 16 bits round weights: each of 512, up or down.
                        eps = torch.finfo(dtype).eps
                        off = (y.detach().cpu().double() - want).abs()
                        bound = eps * (want.abs() + 6 * (x.double() ** 2 @ (weight**2).T).sqrt())
                        self.assertLess((off / (bound + 1e-5)).max().item(), 1)
                        grad = torch.randn_like(y)
                        y.backward(grad)
                        want = grad.cpu().double() @ weight
                        size = (grad.cpu().double() ** 2 @ weight**2).sqrt()
                        off = (given.grad.cpu().double() - want).abs()
                        bound = eps * (want.abs() + 6 * size)
                        self.assertLess((off / (bound + 1e-5)).max().item(), 1)

    @of_operators
    def test_one_launch_and_what_has_no_kernel(self) -> None:
        x = torch.randn(1, 512, device="ocl")
        with torch.no_grad():
            for kind in WITH_KERNELS:
                layer, _ = self.layer(kind, torch.float32)
                before = torch.ocl.unpacked_counts()
                self.assertEqual(commands(lambda layer=layer: layer(x)), 1)
                self.assertEqual(torch.ocl.unpacked_counts(), before)
            layer, _ = self.layer("Q4_0", torch.float32)
            # diffusers has no type without kernels: as if this were one.
            with mock.patch.dict(_gguf.TYPES, {2: None}):
                before = torch.ocl.unpacked_counts().get("diffusers Q4_0", 0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    layer(x)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # it was said
                    layer(x)
            self.assertEqual(torch.ocl.unpacked_counts()["diffusers Q4_0"], before + 2)

    def test_values(self) -> None:
        """Unpacked, as diffusers does for layers that it restores: float16, rounded once."""
        from diffusers.quantizers.gguf.utils import dequantize_gguf_tensor

        for kind in WITH_KERNELS:
            with self.subTest(kind):
                layer, data = self.layer(kind, torch.float32)
                got = dequantize_gguf_tensor(layer.weight)
                want = float64(kind, data)
                self.assertEqual((got.dtype, got.device.type), (torch.float16, "ocl"))
                # Half a unit of float16, whose least is 2^-24, and float32's before it.
                bound = 2**-11 * 1.001 * want.abs() + 2**-25 + 1e-7
                self.assertLessEqual(((got.cpu().double() - want).abs() - bound).max().item(), 0)

    @of_operators
    def test_autocast_and_errors(self) -> None:
        layer, data = self.layer("Q4_K", torch.bfloat16)
        x = torch.randn(3, 512)
        with torch.autocast("ocl", torch.bfloat16), torch.no_grad():
            y = layer(x.to("ocl"))
        self.assertEqual(y.dtype, torch.bfloat16)
        want = x.double() @ float64("Q4_K", data).T + layer.bias.cpu().double()
        self.near(y, want, 2**-7 * want.abs().max().item())
        for wrong in (torch.randn(3, 512), torch.randn(3, 500).bfloat16()):
            with self.subTest(wrong.shape), self.assertRaises(RuntimeError):
                layer(wrong.to("ocl"))
        layer(torch.randn(3, 512, device="ocl", dtype=torch.bfloat16))  # and all goes on

    @of_operators
    def test_transformer(self) -> None:
        """A video model from a file: its steps equal the CPU's, also after it was away."""
        import diffusers

        torch.manual_seed(2)
        model = diffusers.LTXVideoTransformer3DModel(
            in_channels=16, out_channels=16, num_attention_heads=4, attention_head_dim=64,
            cross_attention_dim=256, num_layers=2, caption_channels=256,
        )  # fmt: skip
        path = self.folder / "ltx.gguf"
        file, kinds = File(path, "ltxv"), ("Q4_K", "Q6_K", "Q8_0", "Q4_0")
        for i, (name, p) in enumerate(model.state_dict().items()):
            if p.dim() == 2 and "blocks" in name and p.shape[1] % 256 == 0 and "table" not in name:
                file.weight(name, kinds[i % 4], tuple(p.shape), 1 / p.shape[1] ** 0.5)
            else:
                file.writer.add_tensor(name, p.numpy())
        file.close()
        model.save_config(self.folder)
        config = diffusers.GGUFQuantizationConfig(compute_dtype=torch.float32)
        generator = torch.Generator().manual_seed(3)
        inputs = {
            "hidden_states": torch.randn(1, 2 * 4 * 4, 16, generator=generator),
            "encoder_hidden_states": torch.randn(1, 5, 256, generator=generator),
            "timestep": torch.tensor([500.0]),
            "encoder_attention_mask": torch.ones(1, 5),
        }

        def step(model: torch.nn.Module, device: str) -> torch.Tensor:
            given = {name: t.to(device) for name, t in inputs.items()}
            with torch.no_grad():
                return model(**given, num_frames=2, height=4, width=4).sample.cpu()

        with quiet():
            made = diffusers.LTXVideoTransformer3DModel.from_single_file(
                str(path), config=str(self.folder), quantization_config=config
            )
        layer = made.transformer_blocks[1].ff.net[2]
        self.assertEqual(type(layer).__name__, "GGUFLinear")
        want = step(made, "cpu")
        made.to("ocl")
        kept = made.state_dict()
        for name, (_, data) in file.weights.items():
            self.assertTrue(np.array_equal(kept[name].cpu().numpy(), data))
        torch.ocl.synchronize()
        got = step(made, "ocl")
        # The CPU unpacks in float16: an eps of it, of what two blocks add.
        self.near(got, want, 2**-10 * want.abs().max().item())
        made.to("cpu").to("ocl")  # copy.deepcopy fails on any device: GGUFParameter has none
        self.assertTrue(torch.equal(step(made, "ocl"), got))
        made.dequantize()
        self.assertEqual(type(made.transformer_blocks[1].ff.net[2]), torch.nn.Linear)
        self.near(step(made, "ocl"), got, 2**-10 * want.abs().max().item())


if __name__ == "__main__":
    assert VOCABULARY > IDS.max()
    unittest.main()
