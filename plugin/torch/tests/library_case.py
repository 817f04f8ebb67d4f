"""What the tests of libraries share: where the libraries are, small models, comparisons.

``./run test`` installs some libraries apart from torch, where packages that import whatever they
find do not see them; ``./run libraries`` installs all. Results are compared with the CPU's.
"""

import contextlib
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import unittest
import warnings
from collections.abc import Iterator

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


def takes_long(test):
    """For what starts several processes; one of them is in the gate (test_library_accelerate)."""
    why = "SKIPPED: takes long; ./run libraries and ./run test --thorough do it"
    return unittest.skipUnless("TEST_THOROUGHLY" in os.environ, why)(test)


def applied(case, library):
    states = {s.library: s for s in torch.ocl.integrations()}
    case.assertEqual(states[library].state, "applied", states[library])


# Of the small language models.
SMALL = {"vocab_size": 100, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(**SMALL, num_hidden_layers=2, max_position_embeddings=32)
    return BertForSequenceClassification(config).eval()


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        **SMALL,
        num_hidden_layers=3,
        num_key_value_heads=1,
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


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the libraries' own lines."""
    import logging

    logging.disable(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
