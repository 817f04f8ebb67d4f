"""Lightning on ocl: Trainer and Fabric, devices, precisions, several processes."""

import pickle
import unittest

import torch
from launched_case import CLOSE, STEPS, TORCHRUN, by_one_process, launch
from library_case import Case, applied, needs, quiet, takes_long


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
        from lightning.fabric import Fabric
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
                self.assertIs(type(pickle.loads(pickle.dumps(trainer)).accelerator), OclAccelerator)
            cpu = pl.Trainer(logger=False, accelerator="cpu", precision="bf16-mixed")
            self.assertEqual(cpu.strategy.root_device.type, "cpu")
            self.assertEqual(cpu.precision_plugin.device, "cpu")
            with self.assertRaisesRegex(ValueError, "there are 1 ocl devices"):
                pl.Trainer(accelerator="ocl", devices=[7])
            for strategy in (
                "ddp_fork",
                "ddp_notebook_find_unused_parameters_false",
                pl.strategies.DDPStrategy(start_method="fork"),
            ):
                with self.assertRaisesRegex(ValueError, "say ddp or ddp_spawn"):
                    pl.Trainer(strategy=strategy, accelerator="ocl", devices=1)
            with self.assertRaisesRegex(ValueError, "needs CUDA"):
                Fabric(strategy="dp", accelerator="ocl", devices=1)
            trainer = pl.Trainer(strategy="fsdp", accelerator="ocl", devices=1, logger=False)
            self.assertIsInstance(trainer.strategy, pl.strategies.FSDPStrategy)
            pl.Trainer(strategy="ddp", accelerator="cpu", devices=1, logger=False)
            for wrong in (["0"], [0, "1"], [[0], [1]], [False]):
                with self.assertRaisesRegex(TypeError, "a sequence of ints"):
                    pl.Trainer(accelerator="ocl", devices=wrong)
            with self.assertRaisesRegex(ValueError, "a device stands there twice"):
                pl.Trainer(accelerator="ocl", devices=[0, 0])

    def test_check_before_training(self) -> None:
        from lightning import pytorch as pl
        from lightning.pytorch.demos.boring_classes import BoringModel

        drawn: dict[int, list[float]] = {0: [], 2: []}

        class Model(BoringModel):
            def training_step(self, batch, index):
                drawn[checks].append(torch.rand((), device=self.device).item())
                return super().training_step(batch, index)

            def validation_step(self, batch, index):
                torch.rand((), device=self.device)
                return super().validation_step(batch, index)

        quietly = {"logger": False, "enable_checkpointing": False, "enable_model_summary": False}
        for checks in drawn:
            torch.manual_seed(0)
            with quiet():
                trainer = pl.Trainer(
                    accelerator="ocl", max_steps=2, num_sanity_val_steps=checks, **quietly
                )
                trainer.fit(Model())
        self.assertEqual(len(drawn[0]), 2)
        self.assertEqual(drawn[0], drawn[2])

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

    def test_scaler_of_fsdp(self) -> None:
        from lightning.fabric.plugins.precision import FSDPPrecision as Fabrics
        from lightning.pytorch.plugins.precision import FSDPPrecision as Trainers

        for kind in (Fabrics, Trainers):
            precision = kind("16-mixed")
            self.assertEqual(precision.scaler._device, "ocl")
            self.assertTrue(precision.scaler.is_enabled())
            with precision.forward_context():
                self.assertTrue(torch.is_autocast_enabled("ocl"))

    @takes_long
    def test_trainer_with_two_processes(self) -> None:
        want, ranks = by_one_process(), launch("lightning_ranks.py", self.folder)
        for rank, got in enumerate(ranks):
            self.assertEqual((got["backend"], got["ranks"]), ("ocl", 2))
            self.assertEqual(got["hooked"], STEPS)  # of DDP, for its one bucket
            for name, model in (
                ("ddp", "DistributedDataParallel"),
                ("fsdp", "FullyShardedDataParallel"),
            ):
                with self.subTest(name, rank=rank):
                    self.assertEqual(got[name]["model"], model)
                    self.assertEqual(torch.device(got[name]["device"]).type, "ocl")
                    self.near(got[name]["losses"], want["losses"], CLOSE)
                    if rank == 0:  # which alone gets the whole of FSDP's parameters
                        for key, value in want.items():
                            self.near(got[name][key], value, CLOSE)

    @takes_long
    def test_fabric_with_two_processes(self) -> None:
        want, ranks = by_one_process(), launch("fabric_ranks.py", self.folder, *TORCHRUN)
        # bfloat16 has 8 bits, of numbers near 1, over a few operations.
        for name, model, limit in (
            ("ddp", "DistributedDataParallel", CLOSE),
            ("bf16", "DistributedDataParallel", 3e-2),
            ("fsdp", "FullyShardedDataParallel", CLOSE),
            ("fsdp_bf16", "FullyShardedDataParallel", 3e-2),
        ):
            for rank, got in enumerate(ranks):
                with self.subTest(name, rank=rank):
                    self.assertEqual((got["backend"], got["ranks"]), ("ocl", 2))
                    self.assertEqual(got[name]["model"], model)
                    self.assertEqual(torch.device(got[name]["device"]).type, "ocl")
                    self.near(got[name]["losses"], want["losses"], limit)


if __name__ == "__main__":
    unittest.main()
