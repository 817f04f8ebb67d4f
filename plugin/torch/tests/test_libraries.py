"""Real libraries on ocl: what torch_ocl.integrations changes, and what works without it.

``./run test`` installs some of them apart from torch, where packages that import whatever they find
do not see them; ``./run libraries`` installs all. Results are compared with the CPU's.
"""

import contextlib
import copy
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

APART = pathlib.Path(sys.prefix) / "libraries"
PLUGIN = pathlib.Path(__file__).resolve().parents[1]
sys.path += [
    str(APART),
    str(PLUGIN / "examples/libraries"),
    str(PLUGIN.parents[1] / "tests/oracle"),
]
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="0")

import torch  # noqa: E402
import torch_ocl  # noqa: E402, F401

warnings.filterwarnings("ignore", "You are trying to use|.*litlogger|.*num_workers")


def needs(*names):
    """Skips a class where a library is missing."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"SKIPPED: {missing} is not installed; ./run libraries does")


def applied(case, library):
    states = {s.library: s for s in torch.ocl.integrations()}
    case.assertEqual(states[library].state, "applied", states[library])


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    return BertForSequenceClassification(config).eval()


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.5,  # so that tokens differ
    )
    return LlamaForCausalLM(config).eval()


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def near(self, got, want, limit=1e-5) -> None:
        self.assertLessEqual((got.cpu().double() - want.double()).abs().max().item(), limit)


@needs("safetensors")
class Safetensors(Case):
    def test_files(self) -> None:
        from safetensors import safe_open
        from safetensors.torch import load_file, save_file

        applied(self, "safetensors")
        file = self.folder / "a.safetensors"
        want = {
            "a": torch.arange(6.0).reshape(2, 3),
            "b": torch.ones(4, dtype=torch.bfloat16),
            "none": torch.empty(0, 3),
        }
        save_file({name: tensor.to("ocl") for name, tensor in want.items()}, file)
        for device in ("ocl", "ocl:0", torch.device("ocl"), torch.device("ocl", 0), 0):
            with self.subTest(device=device):
                got = load_file(file, device=device)
                for name, tensor in want.items():
                    self.assertEqual(got[name].device.type, "ocl")
                    self.assertTrue(torch.equal(got[name].cpu(), tensor))
                with safe_open(file, "pt", device) as opened:
                    self.assertIsInstance(opened, safe_open)
                    self.assertEqual(opened.get_tensor("a").device.type, "ocl")
                    self.assertTrue(torch.equal(opened.get_slice("a")[1:].cpu(), want["a"][1:]))
        for device in ("cpu", torch.device("cpu")):
            self.assertEqual(load_file(file, device=str(device))["a"].device.type, "cpu")
        with safe_open(file, "np") as opened:
            self.assertEqual(opened.get_tensor("a").shape, (2, 3))
        for device in ("oclx", "ocl:x"):
            with self.assertRaisesRegex(Exception, "invalid|Invalid"):
                load_file(file, device=device)


@needs("accelerate")
class Accelerate(Case):
    def setUp(self) -> None:
        super().setUp()
        from accelerate.state import AcceleratorState

        applied(self, "accelerate")
        AcceleratorState._reset_state(True)
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 4)
        )
        self.x = torch.randn(16, 8)

    def steps(self, precision="no", count=3, **options):
        from accelerate import Accelerator

        accelerator = Accelerator(mixed_precision=precision, **options)
        model = copy.deepcopy(self.model)
        model[2].p = 0.0
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
        losses = []
        for _ in range(count):
            loss = model(self.x.to(accelerator.device)).float().square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return accelerator, torch.tensor(losses)

    def test_precisions(self) -> None:
        from accelerate.state import AcceleratorState

        AcceleratorState._reset_state(True)
        _, want = self.steps(cpu=True)
        # Of numbers near 1: the types' precisions are 2^-11 and 2^-8, over a few operations.
        for precision, limit in (("no", 1e-6), ("fp16", 2e-3), ("bf16", 2e-2)):
            with self.subTest(precision), warnings.catch_warnings():
                warnings.simplefilter("error")
                AcceleratorState._reset_state(True)
                accelerator, losses = self.steps(precision)
                self.assertEqual(accelerator.device, torch.device("ocl", 0))
                self.near(losses, want, limit)
                if precision == "fp16":
                    self.assertEqual(accelerator.scaler._device, "ocl")
                    self.assertTrue(accelerator.scaler.is_enabled())

    def test_checkpoints_have_random_states(self) -> None:
        accelerator, _ = self.steps()
        accelerator.save_state(str(self.folder))
        want = torch.rand(5, device="ocl")
        accelerator.load_state(str(self.folder))
        self.assertTrue(torch.equal(torch.rand(5, device="ocl"), want))
        (self.folder / "random_states_ocl_0.pt").unlink()  # written where there was no ocl
        accelerator.load_state(str(self.folder))

    def test_memory(self) -> None:
        from accelerate.utils import get_max_memory

        found = get_max_memory()
        self.assertEqual(list(found)[0], 0)
        self.assertGreater(found[0], 0)
        unified = torch.ocl.get_device_properties(0).has_unified_memory
        self.assertEqual("cpu" in found, not unified)
        given = get_max_memory({"cpu": "1GB", 0: "2MB"})
        self.assertEqual(list(given.items()), [(0, 2 * 10**6), ("cpu", 10**9)])
        with self.assertRaisesRegex(ValueError, "Device tpu is not recognized"):
            get_max_memory({"tpu": 1, 0: 1})

    def test_big_models(self) -> None:
        import accelerate
        from safetensors.torch import save_file

        model, want = self.model.eval(), self.model.eval()(self.x)
        file = str(self.folder / "model.safetensors")
        save_file(model.state_dict(), file, {"format": "pt"})
        offload = {"offload_folder": str(self.folder), "offload_state_dict": True}
        for name, place in {
            "cpu_offload": lambda m: accelerate.cpu_offload(m, torch.device("ocl")),
            "disk_offload": lambda m: accelerate.disk_offload(m, self.folder, torch.device("ocl")),
            "one device": lambda m: accelerate.dispatch_model(m, {"": "ocl"}),
            "three places": lambda m: accelerate.dispatch_model(
                m, {"0": 0, "1": "cpu", "2": "cpu", "3": "disk"}, offload_dir=self.folder
            ),
            "auto": lambda m: accelerate.load_checkpoint_and_dispatch(m, file, "auto"),
            "a map": lambda m: accelerate.load_checkpoint_and_dispatch(
                m, file, {"0": "cpu", "1": 0, "2": 0, "3": 0}, **offload
            ),
        }.items():
            with self.subTest(name):
                placed = place(copy.deepcopy(model).eval())
                near = self.x.to("ocl") if name in ("auto", "one device") else self.x
                got = placed(near)
                self.near(got, want)
                if name == "auto":
                    self.assertEqual(placed.hf_device_map, {"": 0})
                    self.assertEqual(got.device.type, "ocl")

    def test_several_processes_are_refused(self) -> None:
        code = "import torch, torch_ocl, accelerate; accelerate.Accelerator()"
        environment = {"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "2"}
        environment |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
        path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(APART)])
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ocl: accelerate was started as 2 processes", done.stderr)


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
import tempfile, torch, test_libraries
torch.manual_seed(0)
if torch.ocl.device_count() < 2:
    sys.exit(77)
model, ids, folder = test_libraries.llama(), torch.randint(1, 100, (2, 5)), tempfile.mkdtemp()
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


@needs("lightning")
class Lightning(Case):
    def test_digits(self) -> None:
        import lightning_digits

        for accelerator, precision, epochs in (
            ("ocl", "32-true", 2),
            ("auto", "16-mixed", 2),
            ("gpu", "bf16-mixed", 2),
        ):
            with self.subTest(accelerator, precision=precision), quiet():
                device, accuracy, _ = lightning_digits.train(accelerator, precision, epochs)
                self.assertEqual(device, torch.device("ocl", 0))
                self.assertGreater(accuracy, 0.85)
        applied(self, "lightning")

    def test_choice(self) -> None:
        from lightning import pytorch as pl
        from lightning.pytorch.accelerators import OclAccelerator

        with quiet():
            for options in (
                {"accelerator": OclAccelerator(), "precision": "16-mixed"},
                {"accelerator": "ocl", "devices": [0], "precision": "16-mixed"},
                {"accelerator": "ocl", "devices": "0,", "precision": "bf16-mixed"},
            ):
                trainer = pl.Trainer(logger=False, **options)
                self.assertEqual(trainer.strategy.root_device, torch.device("ocl", 0))
                self.assertEqual(trainer.precision_plugin.device, "ocl")
            cpu = pl.Trainer(logger=False, accelerator="cpu", precision="bf16-mixed")
            self.assertEqual(cpu.strategy.root_device.type, "cpu")
            self.assertEqual(cpu.precision_plugin.device, "cpu")
            with self.assertRaisesRegex(ValueError, "there are 1 ocl devices"):
                pl.Trainer(accelerator="ocl", devices=[7])

    def test_fabric(self) -> None:
        from lightning.fabric import Fabric

        weights, losses = torch.randn(4, 4), []
        for accelerator, precision in (
            ("ocl", "32-true"),
            ("auto", "16-mixed"),
            ("cpu", "32-true"),
        ):
            with quiet():
                fabric = Fabric(accelerator=accelerator, devices=1, precision=precision)
            model = torch.nn.Linear(4, 4, bias=False)
            model.load_state_dict({"weight": weights})
            model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
            for _ in range(2):
                loss = model(torch.ones(2, 4, device=fabric.device)).float().square().mean()
                losses.append(loss.cpu().detach())
                fabric.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        self.near(torch.stack(losses[:2]), torch.stack(losses[4:]))
        # The first of float16 alone: the scaler may skip a step. Its precision is 2^-11.
        self.near(losses[2], losses[4], 2e-3 * losses[4].item())


@needs("diffusers", "accelerate", "transformers")
class Diffusers(Case):
    def test_samples(self) -> None:
        import sample_images

        (got, _), (want, _) = (sample_images.sample(device, 4, 1) for device in ("ocl", "cpu"))
        self.near(torch.from_numpy(got), torch.from_numpy(want), sample_images.LIMIT)
        applied(self, "diffusers")

    def pipeline(self):
        """Stable Diffusion of random weights; its prompt's vectors are given, not made."""
        import diffusers

        torch.manual_seed(1)
        unet = diffusers.UNet2DConditionModel(
            block_out_channels=(32, 32),
            layers_per_block=1,
            sample_size=8,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=32,
            norm_num_groups=8,
        )
        vae = diffusers.AutoencoderKL(
            block_out_channels=[32, 32],
            down_block_types=["DownEncoderBlock2D"] * 2,
            up_block_types=["UpDecoderBlock2D"] * 2,
            norm_num_groups=8,
        )
        pipeline = diffusers.StableDiffusionPipeline(
            vae, None, None, unet, diffusers.EulerDiscreteScheduler(), None, None, None, False
        )
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

    def image(self, pipeline, device="cpu"):
        generator = torch.Generator().manual_seed(0)
        prompt = torch.randn(1, 8, 32, generator=generator).to(device)
        done = pipeline(
            prompt_embeds=prompt,
            negative_prompt_embeds=-prompt,
            num_inference_steps=3,
            height=16,
            width=16,
            generator=generator,
            output_type="np",
        )
        return torch.from_numpy(done.images)

    def test_offloading(self) -> None:
        want = self.image(self.pipeline())
        ocl, cpu = torch.device("ocl"), torch.device("cpu")
        groups = {"onload_device": ocl, "offload_device": cpu, "offload_type": "leaf_level"}
        for name, place in {
            "to": lambda p: p.to("ocl"),
            "model": lambda p: p.enable_model_cpu_offload(),
            "sequential": lambda p: p.enable_sequential_cpu_offload(),
            "groups": lambda p: p.enable_group_offload(**groups),
            "groups by a stream": lambda p: p.enable_group_offload(**groups, use_stream=True),
            "the same again": lambda p: p.enable_group_offload(**groups, use_stream=True),
        }.items():
            with self.subTest(name):
                pipeline = self.pipeline()
                place(pipeline)
                self.near(self.image(pipeline, "ocl"), want, 1e-4)

    def test_without_float64(self) -> None:
        code = """
            import torch, torch_ocl, diffusers
            torch.manual_seed(0)
            model = diffusers.FluxTransformer2DModel(
                in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
                num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32,
                axes_dims_rope=[4, 4, 8])
            def call(device):
                def ones(*shape):
                    return torch.ones(shape, device=device)
                ids = torch.arange(12.0, device=device).view(4, 3)
                with torch.no_grad():
                    return model.to(device)(
                        hidden_states=ones(1, 4, 4), encoder_hidden_states=ones(1, 3, 32),
                        pooled_projections=ones(1, 32), timestep=ones(1), img_ids=ids,
                        txt_ids=ids[:3]).sample.cpu()
            assert not torch.ocl.get_device_properties(0).has_fp64
            print((call("cpu") - call("ocl")).abs().max().item() < 1e-5)
        """
        path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(APART)])
        done = subprocess.run(
            [sys.executable, "-c", "if True:" + code],
            env={**os.environ, "PYTHONPATH": path, "OCLTENSOR_FLOAT64": "0"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.assertEqual(done.stdout, "True\n", done.stderr)


@needs("ultralytics", "cv2")
class Ultralytics(Case):
    def test_devices(self) -> None:
        import detect  # noqa: F401  imports ultralytics beside torch's CPU build
        from ultralytics.utils.torch_utils import parse_device, select_device

        applied(self, "ultralytics")
        for device in ("ocl", "ocl:0", "OCL", torch.device("ocl"), torch.device("ocl", 0)):
            self.assertEqual(select_device(device, verbose=False), torch.device("ocl", 0))
        self.assertEqual(select_device("cpu", verbose=False).type, "cpu")
        self.assertEqual(parse_device("ocl:0"), "ocl:0")
        for device, text in (("ocl:9", "there are 1 ocl"), ("ocl:0,1", "cannot train together")):
            with self.assertRaisesRegex(ValueError, text):
                select_device(device)

    def test_train_and_predict(self) -> None:
        import detect

        for amp in (False, True):
            with self.subTest(amp=amp), quiet():
                model, trainer, _ = detect.train("ocl", 1, amp, count=8)
                self.assertEqual(trainer.device.type, "ocl")
                self.assertEqual((trainer.amp, trainer.scaler.is_enabled()), (amp, amp))
                self.assertTrue(all(map(torch.isfinite, map(torch.tensor, trainer.tloss.values()))))
                found = []
                for device in ("ocl", "cpu"):
                    model.predictor = None
                    found.append(detect.boxes(model, device))
                self.near(found[0], found[1], detect.LIMIT)


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


@needs("timm")
class Timm(Case):
    def test_models(self) -> None:
        import torchvision_library

        torchvision_library.load()
        import timm

        for name in ("resnet10t", "vit_tiny_patch16_224", "efficientnet_b0"):
            with self.subTest(name):
                torch.manual_seed(0)
                model, x = timm.create_model(name).eval(), torch.randn(1, 3, 224, 224)
                with torch.no_grad():
                    want = model(x)
                    self.near(model.to("ocl")(x.to("ocl")), want, 1e-3 * want.abs().max().item())


@needs("kornia")
class Kornia(Case):
    def test_filters(self) -> None:
        import kornia

        x = torch.rand(2, 3, 16, 16)
        for name, function in {
            "gaussian": lambda x: kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)),
            "sobel": kornia.filters.sobel,
            "hsv": kornia.color.rgb_to_hsv,
            "rotate": lambda x: kornia.geometry.rotate(x, torch.tensor(30.0, device=x.device)),
        }.items():
            with self.subTest(name):
                self.near(function(x.to("ocl")), function(x), 1e-4)


@contextlib.contextmanager
def quiet():
    """Without the libraries' own lines."""
    import logging

    logging.disable(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


if __name__ == "__main__":
    unittest.main()
