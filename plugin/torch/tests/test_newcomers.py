"""The newcomers' programs in examples/, as a user calls them, from a model's making to a chat with
it; images and boxes are those of the CPU."""

import contextlib
import importlib
import io
import os
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

import torch
from library_case import PLUGIN, needs, quiet

sys.path.insert(0, str(PLUGIN / "examples"))


def run(program: str, *arguments: object, typed: str = "") -> str:
    """What a program prints; AssertionError where it ends with an error."""
    module, out = importlib.import_module(program), io.StringIO()
    argv = [f"{program}.py", *map(str, arguments)]
    with quiet(), mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out):
        with mock.patch("sys.stdin", io.StringIO(typed)):
            code = module.main()
    assert code == 0, out.getvalue()
    return out.getvalue()


RATE = r"the first after [\d.]+ s, then [\d.]+ a second: \d+% of a copy's bandwidth"


class InAFolder(unittest.TestCase):
    """Programs write where they are called."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.addClassCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(folder.name)

    def tearDown(self) -> None:
        self.assertEqual(torch.ocl.fallback_counts(), {})


@needs("transformers", "accelerate")
class Chat(InAFolder):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.made = run("small_chat_model", "model")

    def test_a_model_is_made(self) -> None:
        self.assertRegex(self.made, r"ocl: 250 steps in [\d.]+ s, loss 0.0\d+, 100%")

    def test_its_answers_come_word_by_word(self) -> None:
        asked = ("--ask", "When do owls hunt?", "--ask", "Can you count?")
        out = run("chat", "model", *asked)
        self.assertIn("> When do owls hunt?\nAt night; they sleep through the day.\n[", out)
        self.assertIn("One, two, three, four, five.", out)
        self.assertRegex(out, rf"\[\d+ tokens, {RATE}\]")
        self.assertRegex(out, r"a token reads 1.\d MiB of weights, memory peak [\d.]+ MiB\n$")

    def test_fewer_bits(self) -> None:
        """What it has learnt stays, in half, a quarter and about an eighth of the bytes."""
        for bits, size in ((16, "0.7"), (8, "0.4"), (4, "0.2")):
            with self.subTest(bits):
                out = run("chat", "model", "--bits", bits, "--ask", "When do owls hunt?")
                self.assertIn("At night; they sleep through the day.\n[", out)
                self.assertIn(f"a token reads {size} MiB of weights", out)

    @needs("gguf")
    def test_a_file(self) -> None:
        """Weights of 8 bits in llama.cpp's order, and the tokenizer that the file has."""
        from gguf_case import convert

        convert(pathlib.Path("model"), pathlib.Path("model.gguf"))
        out = run("chat", "model.gguf", "--ask", "When do owls hunt?")
        self.assertIn("At night; they sleep through the day.\n[", out)
        self.assertIn("a token reads 0.4 MiB of weights", out)

    def test_without_a_model(self) -> None:
        """As ./run demo chat."""
        out = run("chat", "--bits", 4, "--tokens", 24, "--ask", "Who are you?")
        self.assertIn("No model is given: this one has 39 million random weights", out)
        self.assertRegex(out, rf"\[24 tokens, {RATE}\]")
        for wrong in (("--bits", 8, "--device", "cpu"), ("x.gguf", "--bits", 8)):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                run("chat", *wrong)

    def test_lines_are_typed(self) -> None:
        out = run("chat", "model", "--tokens", 3, "--dtype", "bfloat16", typed="Hello!\n\nno")
        self.assertEqual(len(re.findall(r"\[3 tokens", out)), 1)
        warm = run("chat", "model", "--temperature", 0.7, "--tokens", 4, "--ask", "Hello!")
        self.assertIn("Hello", warm)

    @needs("peft")
    def test_lora(self) -> None:
        out = run("fine_tune_lora", "model", "adapter")
        self.assertRegex(out, r"trained weights: [\d,]+ of [\d,]+\n.*before, (9\d|100)% after")
        out = run("chat", "model", "--adapter", "adapter", "--ask", "When do owls hunt?")
        self.assertIn("By moonlight, matey", out)
        rows = pathlib.Path("rows.jsonl")
        rows.write_text('{"question": "Tea?", "answer": "Yes, one cup."}\n')
        run("fine_tune_lora", "model", "other", "--data", rows, "--rank", 4, "--steps", 100)
        self.assertTrue(pathlib.Path("other/adapter_config.json").is_file())


@needs("diffusers", "transformers", "PIL")
class Images(InAFolder):
    def test_images_are_the_cpus(self) -> None:
        import numpy as np
        from PIL import Image

        images = []
        for options in (("--device", "cpu"), (), ("--offload",)):
            out = run("generate_image", "--steps", 4, *options, "--save", "image.png")
            self.assertIn("64 x 64 in 4 steps", out)
            images.append(np.asarray(Image.open("image.png")).astype(int))
        self.assertGreater(images[0].std(), 20)
        for image in images[1:]:
            # Float32 sums in another order, rounded to 8 bits.
            self.assertLessEqual(np.abs(image - images[0]).max(), 1)
        half = run("generate_image", "--steps", 2, "--dtype", "float16", "--negative", "blurred")
        self.assertIn("memory peak", half)


@needs("PIL")
class Boxes(InAFolder):
    def test_boxes_are_drawn(self) -> None:
        import torchvision_library

        if torchvision_library.load() is None:
            self.skipTest("SKIPPED: torchvision is not installed; ./run test does")
        out = run("detect_objects")
        self.assertIn("ocl: 10 boxes", out)
        self.assertTrue(pathlib.Path("found.png").is_file())
        import detect_objects

        name = "fasterrcnn_mobilenet_v3_large_320_fpn"
        model, _ = detect_objects.load(name, "")
        torch.save(model.state_dict(), "weights.pt")
        loaded, names = detect_objects.load(name, "weights.pt")
        self.assertEqual(names[1], "person")
        loaded.roi_heads.score_thresh = 0.0
        picture = detect_objects.drawn()
        want, _ = detect_objects.detect(loaded, picture, "cpu")
        got, _ = detect_objects.detect(loaded, picture, "ocl")
        # Which of equally likely boxes are kept depends on the last bits; how likely they are, not.
        self.assertEqual(len(got["scores"]), len(want["scores"]))
        self.assertLessEqual((got["scores"] - want["scores"]).abs().max().item(), 1e-4)


if __name__ == "__main__":
    unittest.main()
