"""The models of models/ that need torch alone, each in a process of its own; run.py has them
all."""

import unittest

from models import own, run

ONLY_COMPILED = ("gat", "dit", "detector")  # test_compile_models.py
ALONE = [*(name for name in own.OWN if name not in ONLY_COMPILED), "mobilenetv3", "lstm", "gru"]


class Models(unittest.TestCase):
    def test_equal_to_cpu(self) -> None:
        for name in ALONE:
            with self.subTest(model=name):
                _, result, why, _ = run.run_apart(name, 240)
                self.assertIsNotNone(result, why)
                self.assertEqual(run.judge(result), [])

    def test_judge_refuses(self) -> None:
        good = {"forward": (1e-6, 1e-6), "gradient": (1e-6, 1e-6), "step": (1e-7, 0), "extra": True}
        self.assertEqual(run.judge(good), [])
        for change in (
            {"forward": (1e-3, 1e-6)},
            {"gradient": (float("nan"), 1)},
            {"extra": False},
            {"uncompiled": ["why"]},
            {"breaks": False},
            {"autocast": (0.3, 0.1)},
        ):
            self.assertEqual(len(run.judge({**good, **change})), 1)


if __name__ == "__main__":
    unittest.main()
