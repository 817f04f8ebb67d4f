"""torchaudio on ocl, unchanged: its transforms and functions beside the CPU's, with gradients."""

import importlib
import unittest
from collections.abc import Callable
from typing import Any

import torch
from library_case import Case

torchaudio = importlib.import_module("torchaudio_library").load()  # found by library_case
RATE = 8000
SPECTRUM = {"n_fft": 64, "hop_length": 16}
MELS = {"n_mels": 20, **SPECTRUM}


def transforms() -> dict[str, tuple[Callable[[], Any], str]]:
    """Each transform, and which of `inputs` it takes."""
    T = torchaudio.transforms
    return {
        "Spectrogram": (lambda: T.Spectrogram(**SPECTRUM), "waves"),
        "Spectrogram, complex": (lambda: T.Spectrogram(power=None, **SPECTRUM), "waves"),
        "InverseSpectrogram": (lambda: T.InverseSpectrogram(**SPECTRUM), "complex spectrum"),
        "GriffinLim": (lambda: T.GriffinLim(n_iter=4, rand_init=False, **SPECTRUM), "spectrum"),
        "AmplitudeToDB": (lambda: T.AmplitudeToDB(top_db=40), "spectrum"),
        "MelScale": (lambda: T.MelScale(20, RATE, n_stft=33), "spectrum"),
        "MelSpectrogram": (lambda: T.MelSpectrogram(RATE, **MELS), "waves"),
        "MFCC": (lambda: T.MFCC(RATE, 12, melkwargs=MELS), "waves"),
        "LFCC": (lambda: T.LFCC(RATE, 20, n_lfcc=12, speckwargs=SPECTRUM), "waves"),
        "MuLawEncoding": (lambda: T.MuLawEncoding(), "waves"),
        "Resample": (lambda: T.Resample(RATE, 6000), "waves"),
        "Resample, Kaiser": (lambda: T.Resample(RATE, 12000, "sinc_interp_kaiser"), "waves"),
        "ComputeDeltas": (lambda: T.ComputeDeltas(), "spectrum"),
        "TimeStretch": (lambda: T.TimeStretch(16, 33, 1.2), "complex spectrum"),
        "Fade": (lambda: T.Fade(100, 200, "half_sine"), "waves"),
        "Vol": (lambda: T.Vol(6.0, "db"), "waves"),
        "SlidingWindowCmn": (lambda: T.SlidingWindowCmn(10, 5, norm_vars=True), "spectrum"),
        "SpectralCentroid": (lambda: T.SpectralCentroid(RATE, **SPECTRUM), "waves"),
        "PitchShift": (lambda: T.PitchShift(RATE, 2, **SPECTRUM), "waves"),
        "Loudness": (lambda: T.Loudness(RATE), "waves"),
        "Preemphasis": (lambda: T.Preemphasis(), "waves"),
        "Deemphasis": (lambda: T.Deemphasis(), "waves"),
        "Speed": (lambda: T.Speed(RATE, 1.1), "waves"),
        "PSD": (lambda: T.PSD(), "complex spectrum"),
    }


def functions() -> dict[str, tuple[Callable[..., Any], str]]:
    F = torchaudio.functional

    def noisy(x: torch.Tensor) -> torch.Tensor:
        return F.add_noise(x, x.flip(-1), torch.tensor([3.0, 6.0], device=x.device))

    def beams(x: torch.Tensor) -> torch.Tensor:
        """Of two densities of power, positive definite."""
        here = torch.einsum("cft,dft->fcd", x, x.conj())
        eye = torch.eye(2, dtype=x.dtype, device=x.device)
        weights = F.mvdr_weights_souden(here, here.flip(0) + eye, 0)
        return F.apply_beamforming(weights, x)

    return {
        "griffinlim": (
            lambda x: F.griffinlim(
                x, torch.hann_window(64, device=x.device), 64, 16, 64, 1.0, 4, 0.9, None, False
            ),
            "spectrum",
        ),
        "DB_to_amplitude": (lambda x: F.DB_to_amplitude(x, 1.0, 0.5), "waves"),
        "mu_law": (lambda x: F.mu_law_decoding(F.mu_law_encoding(x, 256), 256), "waves"),
        "detect_pitch_frequency": (lambda x: F.detect_pitch_frequency(x, RATE), "waves"),
        "fftconvolve": (lambda x: F.fftconvolve(x, x[:, :50], "same"), "waves"),
        "convolve": (lambda x: F.convolve(x, x[:, :50]), "waves"),
        "add_noise": (noisy, "waves"),
        "beamforming": (beams, "complex spectrum"),
        "lfilter": (lambda x: F.lfilter(x, *coefficients(x)), "waves"),
        "filtfilt": (lambda x: F.filtfilt(x, *coefficients(x)), "waves"),
        "lowpass_biquad": (lambda x: F.lowpass_biquad(x, RATE, 1000.0), "waves"),
        "highpass_biquad": (lambda x: F.highpass_biquad(x, RATE, 1000.0), "waves"),
        "allpass_biquad": (lambda x: F.allpass_biquad(x, RATE, 1000.0), "waves"),
        "bandpass_biquad": (lambda x: F.bandpass_biquad(x, RATE, 1000.0), "waves"),
        "bass_biquad": (lambda x: F.bass_biquad(x, RATE, 3.0), "waves"),
        "equalizer_biquad": (lambda x: F.equalizer_biquad(x, RATE, 1000.0, 3.0), "waves"),
        "contrast": (F.contrast, "waves"),
        "dcshift": (lambda x: F.dcshift(x, 0.1, 0.05), "waves"),
        "flanger": (lambda x: F.flanger(x, RATE), "waves"),
        "phaser": (lambda x: F.phaser(x, RATE), "waves"),
        "overdrive": (F.overdrive, "waves"),
        "fbank": (lambda x: torchaudio.compliance.kaldi.fbank(x, dither=0.0), "waves"),
        "mfcc": (lambda x: torchaudio.compliance.kaldi.mfcc(x, dither=0.0), "waves"),
    }


def coefficients(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.tensor([1.0, -0.6, 0.2], device=x.device),
        torch.tensor([0.4, 0.3, 0.1], device=x.device),
    )


def inputs(kind: str) -> torch.Tensor:
    torch.manual_seed(0)
    time = torch.arange(4000) / RATE
    waves = torch.stack([(440 * 6.283 * time).sin(), (990 * 6.283 * time).sin()]) * 0.4
    waves += 0.1 * torch.randn(2, 4000)
    if kind == "waves":
        return waves
    spectrum = torch.stft(waves, 64, 16, window=torch.hann_window(64), return_complex=True)
    return spectrum if kind == "complex spectrum" else spectrum.abs()


def first(value: Any) -> torch.Tensor:
    return value[0] if isinstance(value, tuple) else value


def small_wav2vec2() -> torch.nn.Module:
    return torchaudio.models.wav2vec2_model(
        extractor_mode="layer_norm",
        extractor_conv_layer_config=[(16, 10, 5), (16, 3, 2)],
        extractor_conv_bias=False,
        encoder_embed_dim=32,
        encoder_projection_dropout=0.0,
        encoder_pos_conv_kernel=8,
        encoder_pos_conv_groups=2,
        encoder_num_layers=2,
        encoder_num_heads=4,
        encoder_attention_dropout=0.0,
        encoder_ff_interm_features=64,
        encoder_ff_interm_dropout=0.0,
        encoder_dropout=0.0,
        encoder_layer_norm_first=True,
        encoder_layer_drop=0.0,
        aux_num_out=20,
    )


# Of phases, which are added up over some hundred frames: float32 on ocl, float64 within the CPU.
PHASES = {"TimeStretch", "PitchShift"}
# Gradients that are not compared: of phases, which magnitudes near 0 are divided by.
ILL_CONDITIONED = {"GriffinLim", "griffinlim"}


def gradient(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor | None:
    """None where there is none: of codes, and of what torchaudio's Python code does in place."""
    try:
        return torch.autograd.grad(y.abs().square().sum(), x)[0]
    except RuntimeError:
        return None


@unittest.skipIf(torchaudio is None, "SKIPPED: torchaudio is not installed; ./run test does")
class Torchaudio(Case):
    def beside(self, name: str, make: Callable[[], Any], kind: str) -> bool:
        """Compares one with the CPU's; whether it has a gradient."""
        results = {}
        for device in ("cpu", "ocl"):
            called = make()
            if isinstance(called, torch.nn.Module):
                called = called.to(device)
            x = inputs(kind).to(device).requires_grad_()
            y = first(called(x.clone()))  # some change their input in place
            self.assertEqual(y.device.type, device)
            results[device] = [y.detach(), None if name in ILL_CONDITIONED else gradient(y, x)]
        for got, want in zip(results["ocl"], results["cpu"], strict=True):
            self.assertEqual(got is None, want is None)
            if want is not None:
                # float32 sums of up to 4000 terms, in another order
                limit = (5e-3 if name in PHASES else 1e-4) * max(1.0, want.abs().max().item())
                torch.testing.assert_close(got.cpu(), want, rtol=1e-3, atol=limit)
        return results["ocl"][1] is not None

    def test_transforms(self) -> None:
        self.all_of(transforms(), 17)

    def test_functions(self) -> None:
        self.all_of({n: (lambda f=f: f, kind) for n, (f, kind) in functions().items()}, 8)

    def all_of(self, table: dict[str, tuple[Callable[[], Any], str]], gradients: int) -> None:
        found = 0
        for name, (make, kind) in table.items():
            with self.subTest(name):
                found += self.beside(name, make, kind)
        self.assertGreaterEqual(found, gradients)

    def test_masks(self) -> None:
        """Which places are masked is random: how many, and with what, is not."""
        T = torchaudio.transforms
        for make in (T.FrequencyMasking, T.TimeMasking):
            x = torch.ones(4, 3, 33, 40, device="ocl")
            masked = make(20, iid_masks=True)(x)
            self.assertEqual(set(masked.unique().tolist()), {0.0, 1.0})
        masked = T.SpecAugment(2, 8, 2, 8)(x)
        self.assertEqual(masked.device.type, "ocl")
        self.assertEqual(masked.shape, x.shape)

    def test_models(self) -> None:
        M = torchaudio.models
        for name, make, x in (
            ("Wav2Letter", lambda: M.Wav2Letter(40, "mfcc", 13), torch.randn(2, 13, 200)),
            (
                "ConvTasNet",
                lambda: M.ConvTasNet(2, 16, 32, 3, 16, 32, 2, 1),
                torch.randn(1, 1, 400),
            ),
            ("DeepSpeech", lambda: M.DeepSpeech(16, 32, 5), torch.randn(2, 1, 20, 16)),
            ("Wav2Vec2", small_wav2vec2, torch.randn(2, 800)),
        ):
            with self.subTest(name):
                torch.manual_seed(0)
                model = make().eval()
                with torch.no_grad():
                    want = first(model(x))
                    self.near(first(model.to("ocl")(x.to("ocl"))), want, 1e-4)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
