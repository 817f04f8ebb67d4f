"""transformers on ocl: Trainer, generate, device maps, pipelines, whisper, equal to the CPU's."""

import os
import pathlib
import subprocess
import sys
import unittest

import torch
from launched_case import TORCHRUN, launch
from library_case import APART, Case, applied, bert, llama, needs, takes_long


@needs("transformers", "accelerate")
class Transformers(Case):
    def test_trainer(self) -> None:
        import fine_tune_bert

        want = fine_tune_bert.train("cpu", 20)
        applied(self, "transformers")
        # The types' precisions, over the layers of one forward pass of losses near 0.7.
        for options, limit in (({}, 2e-3), ({"fp16": True}, 2e-2), ({"bf16": True}, 5e-2)):
            with self.subTest(options=options):
                got = fine_tune_bert.train("ocl", 20, **options)
                trainer = got["trainer"]
                self.assertEqual(trainer.args.device.type, "ocl")
                self.assertEqual(next(trainer.model.parameters()).device.type, "ocl")
                worst = max(abs(a - b) for a, b in zip(got["losses"][:5], want["losses"][:5]))
                self.assertLessEqual(worst, limit)
                if "fp16" in options:
                    self.assertTrue(trainer.accelerator.scaler.is_enabled())
        self.assertEqual(torch.ocl.fallback_counts(), {})

    def test_trainer_goes_on_where_it_was(self) -> None:
        from fine_tune_bert import sentences
        from transformers import Trainer, TrainingArguments

        def train(resume):
            model = bert().train()  # with dropout: its random numbers have to go on, too
            arguments = TrainingArguments(
                output_dir=str(self.folder),
                max_steps=6,
                save_steps=3,
                per_device_train_batch_size=8,
                logging_steps=1,
                report_to=[],
                disable_tqdm=True,
            )
            trainer = Trainer(model=model, args=arguments, train_dataset=sentences(48, 1))
            trainer.train(resume_from_checkpoint=resume)
            return [row["loss"] for row in trainer.state.log_history if "loss" in row]

        whole = train(None)
        checkpoint = self.folder / "checkpoint-3"
        self.assertTrue((checkpoint / "rng_state_ocl.pth").is_file())
        torch.ocl.manual_seed(99)
        self.assertEqual(train(str(checkpoint))[3:], whole[3:])

    @takes_long
    def test_trainer_with_two_processes(self) -> None:
        import fine_tune_bert

        want = fine_tune_bert.train("ocl", 8, average_tokens_across_devices=False)
        ranks = launch("trainer_ranks.py", self.folder, *TORCHRUN)
        parameters = dict(want["trainer"].model.named_parameters())
        for got in ranks:
            self.assertEqual((got["backend"], got["mode"]), ("ocl", "distributed"))
            self.assertEqual(torch.device(got["device"]).type, "ocl")
            self.assertEqual(got["model"], "DistributedDataParallel")
            self.assertEqual(len(got["losses"]), 8)
            # The limit of one process on two devices: Adam divides small sums by small ones.
            for a, b in zip(got["losses"], want["losses"], strict=True):
                self.assertAlmostEqual(a, b, delta=fine_tune_bert.LIMIT)
            self.assertEqual(got["accuracy"], want["accuracy"])
            for name, value in got["parameters"].items():
                self.near(value, parameters[name].detach().cpu(), fine_tune_bert.LIMIT)

    def test_generate(self) -> None:
        model, ids = llama(), torch.randint(1, 100, (2, 5))
        greedy = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
        want = model.generate(ids, **greedy)
        beams = model.generate(ids, **greedy, num_beams=3)
        model.to("ocl")
        ids = ids.to("ocl")
        self.assertTrue(torch.equal(model.generate(ids, **greedy).cpu(), want))
        static = model.generate(ids, **greedy, cache_implementation="static")
        self.assertTrue(torch.equal(static.cpu(), want))
        applied(self, "transformers")
        offloaded = model.generate(ids, **greedy, cache_implementation="offloaded")
        self.assertTrue(torch.equal(offloaded.cpu(), want))
        self.assertTrue(torch.equal(model.generate(ids, **greedy, num_beams=3).cpu(), beams))
        sampled = model.generate(ids, **(greedy | {"do_sample": True, "top_k": 5, "top_p": 0.9}))
        self.assertEqual(sampled.shape, (2, 17))

    def test_device_maps(self) -> None:
        model, ids = llama(), torch.randint(1, 100, (2, 5))
        want = model(ids).logits
        model.save_pretrained(self.folder)
        layers = {"model.embed_tokens": 0, "model.norm": 0, "model.rotary_emb": 0, "lm_head": 0}
        spread = layers | {"model.layers.0": "disk", "model.layers.1": "cpu", "model.layers.2": 0}
        for where in ("auto", "balanced", "sequential", "ocl", "ocl:0", 0, {"": "ocl"}, spread):
            with self.subTest(where=where):
                loaded = type(model).from_pretrained(
                    self.folder, device_map=where, offload_folder=str(self.folder / "offload")
                )
                self.assertEqual(loaded.model.embed_tokens.weight.device.type, "ocl")
                with torch.no_grad():
                    self.near(loaded(ids.to("ocl")).logits, want, 1e-4)
        size = {0: "190KB", "cpu": "1GB"}  # of 124 KB, and a reserve for the largest layer
        split = type(model).from_pretrained(self.folder, device_map="auto", max_memory=size)
        with torch.no_grad():
            self.near(split(ids.to("ocl")).logits, want, 1e-4)

    def test_pipelines(self) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast, pipeline

        words = {f"w{i}": i for i in range(99)} | {"[UNK]": 99}
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="w0", eos_token="w1"
        )
        text, model = ["w3 w4 w5", "w6"], bert()
        [want, _] = pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu")(
            text
        )
        for device in ("ocl", "ocl:0", 0, torch.device("ocl"), None, -1, "cpu"):
            with self.subTest(device=device):
                pipe = pipeline(
                    "text-classification", model=bert(), tokenizer=tokenizer, device=device
                )
                expected = "cpu" if device in (-1, "cpu") else "ocl"
                self.assertEqual(pipe.device.type, expected)
                self.assertEqual(pipe.model.device.type, expected)
                self.assertAlmostEqual(pipe(text)[0]["score"], want["score"], places=5)
        llama().save_pretrained(self.folder)
        tokenizer.save_pretrained(self.folder)
        pipe = pipeline("text-generation", model=str(self.folder), device_map="auto")
        self.assertEqual(pipe.device.type, "ocl")
        self.assertIn("w3 w4", pipe("w3 w4", max_new_tokens=3)[0]["generated_text"])

    def test_whisper(self) -> None:
        import transcribe

        got, want = (transcribe.transcribe(device)[0] for device in ("ocl", "cpu"))
        self.assertEqual(got, want)
        self.assertGreater(len(set(want)), 8)


@needs("transformers", "accelerate")
class TwoDevices(unittest.TestCase):
    """PoCL is asked for two devices; other drivers are tried where they have two."""

    CODE = """
import sys; sys.path[:0] = {path!r}
import tempfile, torch, library_case
torch.manual_seed(0)
if torch.ocl.device_count() < 2:
    sys.exit(77)
model, ids, folder = library_case.llama(), torch.randint(1, 100, (2, 5)), tempfile.mkdtemp()
model.save_pretrained(folder)
spread = type(model).from_pretrained(folder, device_map="balanced")
with torch.no_grad():
    near = (spread(ids.to("ocl:0")).logits.cpu() - model(ids).logits).abs().max().item() < 1e-4
print(near, sorted(set(spread.hf_device_map.values())))
"""

    def test_a_model_in_two_halves(self) -> None:
        path = [str(pathlib.Path(__file__).resolve().parent), str(APART)]
        done = subprocess.run(
            [sys.executable, "-c", self.CODE.format(path=path)],
            env={**os.environ, "POCL_DEVICES": "pthread pthread"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        if done.returncode == 77:
            self.skipTest("SKIPPED: needs two devices")
        self.assertEqual(done.stdout, "True [0, 1]\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
