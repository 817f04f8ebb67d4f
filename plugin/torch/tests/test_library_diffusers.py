"""diffusers on ocl: pipelines, offloading, devices without float64, equal to the CPU's."""

import os
import subprocess
import sys
import unittest

import torch
from library_case import APART, Case, applied, needs


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


if __name__ == "__main__":
    unittest.main()
