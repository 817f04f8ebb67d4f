"""Whisper, small and with random weights, transcribes a tone on `ocl` and on the CPU.

usage: transcribe.py [--device ocl] [--tokens 40]; ends with an error unless both give the same
tokens.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration


def transcribe(device: str, tokens: int = 40) -> tuple[list[int], float]:
    """The tokens, and seconds."""
    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=200,
        num_mel_bins=80,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=100,
        max_target_positions=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
        decoder_start_token_id=2,
        init_std=0.5,  # other weights would repeat one token
    )
    model = WhisperForConditionalGeneration(config).eval()
    model.generation_config.begin_suppress_tokens = model.generation_config.suppress_tokens = None
    rate, seconds = 16000, 2
    ramp = np.linspace(200, 2000, rate * seconds)
    sound = np.sin(2 * np.pi * np.cumsum(ramp) / rate).astype(np.float32)
    features = WhisperFeatureExtractor(chunk_length=seconds)(
        sound, sampling_rate=rate, return_tensors="pt"
    ).input_features
    start = time.perf_counter()
    found = model.to(device).generate(
        features.to(device), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False
    )
    return found[0].tolist(), time.perf_counter() - start


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--device", default="ocl")
    p.add_argument("--tokens", type=int, default=40)
    options = p.parse_args()
    got, ours = transcribe(options.device, options.tokens)
    want, cpu = transcribe("cpu", options.tokens)
    same = sum(a == b for a, b in zip(got, want))
    print(
        f"Whisper on {options.device}: {same} of {len(want)} tokens are the CPU's, "
        f"{len(set(want))} different ones, {ours:.2f} s with compiling (CPU {cpu:.2f} s)"
    )
    return 0 if got == want else 1


if __name__ == "__main__":
    sys.exit(main())
