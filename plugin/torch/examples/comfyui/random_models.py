"""Writes models of random weights for ComfyUI: a small Stable Diffusion 3 with CLIP-L as its text
encoder, and the small autoencoder TAESD. Images of them are noise.

usage: random_models.py FOLDER, in ComfyUI's folder and with its Python. FOLDER is its `models`.
"""

from __future__ import annotations

import json
import pathlib
import sys

LATENT, DEPTH, TEXT, POOLED = 16, 2, 4096, 2048  # all but DEPTH are those of Stable Diffusion 3


def random_weights(model: object, dtype: object) -> dict:
    """Weights that keep sizes near 1, from a seed; norms and biases that do nothing."""
    import torch

    generator, weights = torch.Generator().manual_seed(1), {}
    for name, old in model.state_dict().items():
        if old.dim() < 2:
            new = torch.zeros_like(old) if name.endswith("bias") else torch.ones_like(old)
        else:
            scale = 0.02 if "embedding" in name else old[0].numel() ** -0.5
            new = torch.randn(old.shape, generator=generator) * scale
        weights[name] = new.to(dtype).contiguous()
    return weights


def within_colours(decoder: object, weights: dict) -> dict:
    """The decoder's weights with another last layer: colours of noise are about the middle ones,
    where they would mostly be cut off at black or full, and a comparison would see little."""
    import torch

    decoder.load_state_dict(weights)
    noise = torch.randn(1, LATENT, 16, 16, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        image = decoder(noise)
    scale = 0.2 / image.std((0, 2, 3))
    last = len(decoder) - 1
    return weights | {
        f"{last}.weight": weights[f"{last}.weight"] * scale[:, None, None, None],
        f"{last}.bias": 0.5 - image.mean((0, 2, 3)) * scale,
    }


def main() -> None:
    folder = pathlib.Path(sys.argv[1]).resolve()
    sys.argv = [sys.argv[0], "--cpu"]  # ComfyUI reads it when it is imported
    sys.path.insert(0, str(pathlib.Path.cwd()))
    import comfy.options

    comfy.options.enable_args_parsing()
    import torch
    from comfy import clip_model, ops
    from comfy.ldm.modules.diffusionmodules.mmdit import MMDiT
    from comfy.taesd import taesd
    from safetensors.torch import save_file

    hidden = 64 * DEPTH
    linear = {"in_features": TEXT, "out_features": hidden}
    text = json.loads(pathlib.Path("comfy/sd1_clip_config.json").read_text())
    parts = {
        "model.diffusion_model.": MMDiT(
            input_size=None,
            in_channels=LATENT,
            depth=DEPTH,
            adm_in_channels=POOLED,
            context_embedder_config={"target": "torch.nn.Linear", "params": linear},
            pos_embed_max_size=32,
            num_patches=32**2,
            operations=ops.disable_weight_init,
        ),
        "text_encoders.clip_l.transformer.": clip_model.CLIPTextModel(
            text, torch.float16, "cpu", ops.disable_weight_init
        ),
    }
    checkpoint = {
        prefix + name: tensor
        for prefix, model in parts.items()
        for name, tensor in random_weights(model, torch.float16).items()
    }
    for name in ("checkpoints", "vae_approx"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    save_file(checkpoint, folder / "checkpoints/random_sd3.safetensors")
    for name, make in (("encoder", taesd.Encoder), ("decoder", taesd.Decoder)):
        model = make(LATENT)
        weights = random_weights(model, torch.float32)
        if name == "decoder":
            weights = within_colours(model, weights)
        save_file(weights, folder / f"vae_approx/taesd3_{name}.safetensors")


if __name__ == "__main__":
    main()
