"""peft on ocl, with its integration: LoRA trains, merges, is saved and loaded."""

import unittest

import torch
from library_case import Case, applied, llama, needs


@needs("peft", "accelerate", "transformers")
class Peft(Case):
    def test_lora(self) -> None:
        import peft

        ids, losses = torch.randint(1, 100, (2, 6)), {}
        for device in ("cpu", "ocl"):
            torch.manual_seed(1)
            config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)
            model = peft.get_peft_model(llama(), config).to(device)
            optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)
            rows = losses.setdefault(device, [])
            for _ in range(3):
                loss = model(ids.to(device), labels=ids.to(device)).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                rows.append(loss.item())
            model.save_pretrained(self.folder / device)
        self.near(torch.tensor(losses["ocl"]), torch.tensor(losses["cpu"]), 1e-4)
        again = peft.PeftModel.from_pretrained(llama().to("ocl"), self.folder / "ocl")
        with torch.no_grad():
            merged = again.merge_and_unload()(ids.to("ocl"), labels=ids.to("ocl")).loss.item()
            self.assertAlmostEqual(
                merged, model(ids.to("ocl"), labels=ids.to("ocl")).loss.item(), 4
            )

    def test_device(self) -> None:
        import peft

        applied(self, "peft")
        self.assertEqual(peft.utils.infer_device(), "ocl")
        config = peft.LoraConfig(r=2, target_modules=["q_proj"])
        peft.get_peft_model(llama().to("ocl"), config).save_pretrained(self.folder)
        weights = peft.utils.load_peft_weights(self.folder)  # without a device
        self.assertEqual({w.device.type for w in weights.values()}, {"ocl"})


if __name__ == "__main__":
    unittest.main(warnings="ignore")
