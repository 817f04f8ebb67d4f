"""bitsandbytes on ocl, with its integration: quantised weights, and optimizers with quantised
states."""

import unittest

import torch
from library_case import Case, applied, llama, needs, quiet
from quantised_weights import values  # of tests/oracle, which library_case finds
from test_command_counts import commands
from torch._dynamo.utils import counters

with quiet():  # it tells which kernels it has not found
    try:
        import bitsandbytes as bnb
        from bitsandbytes import functional
    except ImportError:
        bnb = None


@needs("bitsandbytes")
class BitsAndBytes(Case):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(0)

    def test_four_bits(self) -> None:
        """Every element becomes the code nearest to it, of its block's largest."""
        x = torch.randn(6, 64)
        for kind in ("nf4", "fp4"):
            with self.subTest(kind):
                packed, state = functional.quantize_4bit(x.to("ocl"), quant_type=kind)
                got = functional.dequantize_4bit(packed, state)
                self.assertEqual((packed.device.type, got.device.type), ("ocl", "ocl"))
                codes, scale = state.code.cpu().double(), x.double().abs().amax(1, keepdim=True)
                nearest = ((x.double() / scale).unsqueeze(-1) - codes).abs().amin(-1) * scale
                # 1e-6: quotients are rounded before codes are compared.
                self.near((got.cpu() - x).abs(), nearest, 1e-6)

    def test_four_bit_layer(self) -> None:
        layer = bnb.nn.Linear4bit(64, 32, quant_type="nf4", compute_dtype=torch.float32).to("ocl")
        weight = functional.dequantize_4bit(layer.weight.data, layer.weight.quant_state).cpu()
        x = torch.randn(5, 64)
        given = x.to("ocl").requires_grad_()
        out = layer(given)
        out.sum().backward()
        want = x.double() @ weight.double().T + layer.bias.cpu().double()
        self.near(out.detach(), want, 1e-5)
        self.near(given.grad, weight.double().sum(0).expand(5, 64), 1e-5)

    def test_four_bit_products(self) -> None:
        """Few rows and many, scales that are nested or not, bytes kept as floats; rows that do not
        begin with blocks. The weight is the code of each nibble times its block's scale."""
        applied(self, "bitsandbytes")
        for kind, nested, storage, columns in (
            ("nf4", False, torch.uint8, 256),
            ("nf4", True, torch.uint8, 96),
            ("fp4", True, torch.bfloat16, 256),
            ("fp4", False, torch.uint8, 96),
        ):
            layer = bnb.nn.Linear4bit(
                columns, 33, compute_dtype=torch.float32, compress_statistics=nested,
                quant_type=kind, quant_storage=storage,
            ).to("ocl").eval()  # fmt: skip
            state = layer.weight.quant_state
            scales = state.absmax
            if nested:
                scales = functional.dequantize_blockwise(scales, state.state2) + state.offset
            raw = layer.weight.data.view(torch.uint8).cpu().numpy()
            weight = torch.from_numpy(
                values(kind, raw, 33, columns, 64, scales.flatten().cpu().numpy())
            )
            kept = functional.dequantize_4bit(layer.weight.data, state)
            self.near(kept, weight, 1e-7)
            out = torch.empty_like(kept)
            self.near(functional.dequantize_4bit(layer.weight.data, state, out=out), weight, 1e-7)
            for rows in (1, 4, 20):
                with self.subTest(kind, nested=nested, rows=rows, columns=columns), torch.no_grad():
                    x = torch.randn(rows, 1, columns)
                    got = layer(x.to("ocl"))
                    want = x.double() @ weight.T + layer.bias.cpu().double()
                    self.near(got, want, 1e-5)
            one = torch.randn(1, columns)
            got = functional.gemv_4bit(one.to("ocl"), layer.weight.data, state=state)
            self.near(got, one.double() @ weight.T, 1e-5)

    def test_four_bit_layer_is_one_launch(self) -> None:
        """Also where scales are nested: they are unpacked once, unless they are written to."""
        applied(self, "bitsandbytes")
        for nested in (False, True):
            layer = bnb.nn.Linear4bit(
                256, 64, quant_type="nf4", compute_dtype=torch.float32, compress_statistics=nested
            ).to("ocl")
            x = torch.randn(1, 256, device="ocl")
            with torch.no_grad():
                self.assertEqual(commands(lambda layer=layer, x=x: layer(x)), 1)
                before = layer(x)
                layer.weight.quant_state.absmax.zero_()
                self.assertFalse(torch.equal(layer(x).cpu(), before.cpu()))

    def test_eight_bit_layer(self) -> None:
        dense = torch.nn.Linear(64, 32)
        layer = bnb.nn.Linear8bitLt(64, 32, has_fp16_weights=False)
        layer.load_state_dict(dense.state_dict())
        x = torch.randn(5, 64)
        out = layer.to("ocl")(x.to("ocl").half())
        self.assertEqual(layer.weight.dtype, torch.int8)
        # Both factors are rounded to 1/254 of their largest, 64 times, by chance up or down.
        bound = 3 * (x.abs().max() * dense.weight.abs().max() * 64**0.5 / 254).item()
        self.near(out, dense(x).detach(), bound)

    def test_sums_of_bytes_are_exact(self) -> None:
        """Long rows, whose sums float32 would round."""
        applied(self, "bitsandbytes")
        a = torch.randint(100, 128, (3, 5, 8192)).to(torch.int8)
        b = torch.randint(-128, 128, (9, 8192)).to(torch.int8)
        b[:4] = 127
        want = (a.long() @ b.long().t()).int()
        got = torch.ops.bitsandbytes.int8_linear_matmul(a.to("ocl"), b.to("ocl"))
        self.assertTrue(torch.equal(got.cpu(), want))
        out = torch.empty(3, 5, 9, dtype=torch.int32, device="ocl")
        torch.ops.bitsandbytes.int8_linear_matmul.out(a.to("ocl"), b.to("ocl"), out)
        self.assertTrue(torch.equal(out.cpu(), want))

    def test_optimizers(self) -> None:
        """States of eight bits; the first step begins at zero, and so is that of 32 bits."""
        applied(self, "bitsandbytes")
        for name, options in {
            "AdamW8bit": {},
            "PagedAdamW8bit": {},
            "Lion8bit": {},
            "SGD8bit": {"momentum": 0.9},
            "RMSprop8bit": {},
            "AdEMAMix8bit": {},
        }.items():
            with self.subTest(name):
                weights = []
                start, grad = torch.randn(128, 64), torch.randn(128, 64)
                for device in ("cpu", "ocl"):
                    p = torch.nn.Parameter(start.clone().to(device))
                    optimizer = getattr(bnb.optim, name)([p], lr=0.01, **options)
                    p.grad = grad.to(device)
                    optimizer.step()
                    weights.append(p.detach().cpu())
                    states = [s for s in optimizer.state[p].values() if torch.is_tensor(s)]
                    self.assertIn(torch.uint8, [s.dtype for s in states])
                self.assertGreater((weights[1] - start).abs().max().item(), 1e-4)
                self.near(weights[1], weights[0], 1e-6)

    def test_nothing_is_traced(self) -> None:
        """Neither a layer's calls nor an optimizer's steps: Inductor would refuse each trace."""
        applied(self, "bitsandbytes")
        torch._dynamo.reset()
        counters.clear()
        layer = bnb.nn.Linear4bit(64, 32, quant_type="nf4", compute_dtype=torch.float32).to("ocl")
        weight = torch.nn.Parameter(torch.randn(128, 64, device="ocl"))
        optimizers = [kind([weight], lr=0.01) for kind in (bnb.optim.AdamW8bit, bnb.optim.Adam)]
        for _ in range(10):
            layer(torch.randn(5, 64, device="ocl"))
            weight.grad = torch.randn(128, 64, device="ocl")
            for optimizer in optimizers:
                optimizer.step()
        self.assertEqual(counters["frames"]["total"], 0)

    def test_training(self) -> None:
        applied(self, "bitsandbytes")
        model = torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8)
        )
        model.to("ocl")
        optimizer = bnb.optim.Adam8bit(model.parameters(), lr=0.01)
        x = torch.randn(32, 64, device="ocl")
        y = torch.randn(32, 8, device="ocl")
        losses = []
        for _ in range(30):
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 10)


@needs("bitsandbytes", "transformers", "accelerate")
class Transformers(Case):
    def load(self, **options: object) -> torch.nn.Module:
        from transformers import AutoModelForCausalLM, BitsAndBytesConfig

        self.model = llama()
        self.model.save_pretrained(self.folder)
        config = BitsAndBytesConfig(**options)
        with quiet():
            return AutoModelForCausalLM.from_pretrained(
                self.folder, quantization_config=config, device_map="ocl"
            )

    def test_four_bits(self) -> None:
        """The same as a model on the CPU with the weights that were kept."""
        quantised = self.load(load_in_4bit=True, bnb_4bit_use_double_quant=True)
        for name, layer in quantised.named_modules():
            if isinstance(layer, bnb.nn.Linear4bit):
                kept = functional.dequantize_4bit(layer.weight.data, layer.weight.quant_state)
                self.model.get_submodule(name).weight.data.copy_(kept.cpu())
        ids = torch.arange(10).view(1, 10)
        want = self.model(ids).logits.detach()
        self.near(quantised(ids.to("ocl")).logits.detach(), want, 1e-3)
        tokens = quantised.generate(ids.to("ocl"), max_new_tokens=3, do_sample=False)
        self.assertEqual(tokens.tolist(), self.model.generate(ids, max_new_tokens=3).tolist())

    def test_eight_bits(self) -> None:
        quantised = self.load(load_in_8bit=True)
        ids = torch.arange(10).view(1, 10)
        want = self.model(ids).logits.detach()
        with quiet():
            got = quantised(ids.to("ocl")).logits.detach().float().cpu()
        # Seven layers of weights and activations, each rounded to a hundredth.
        self.assertLess(((got - want).std() / want.std()).item(), 0.1)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
