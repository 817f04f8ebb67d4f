"""accelerate on ocl: devices, precisions, checkpoints, big models, several processes."""

import argparse
import copy
import unittest
import unittest.mock
import warnings

import torch
import torch_ocl
from launched_case import CLOSE, by_one_process, launch
from library_case import Case, applied, needs


@needs("accelerate")
class Accelerate(Case):
    def setUp(self) -> None:
        super().setUp()
        from accelerate.state import AcceleratorState

        applied(self, "accelerate")
        AcceleratorState._reset_state(True)
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 4)
        )
        self.x = torch.randn(16, 8)

    def steps(self, precision="no", count=3, **options):
        from accelerate import Accelerator

        accelerator = Accelerator(mixed_precision=precision, **options)
        model = copy.deepcopy(self.model)
        model[2].p = 0.0
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
        losses = []
        for _ in range(count):
            loss = model(self.x.to(accelerator.device)).float().square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return accelerator, torch.tensor(losses)

    def test_precisions(self) -> None:
        from accelerate.state import AcceleratorState

        AcceleratorState._reset_state(True)
        _, want = self.steps(cpu=True)
        # Of numbers near 1: the types' precisions are 2^-11 and 2^-8, over a few operations.
        for precision, limit in (("no", 1e-6), ("fp16", 2e-3), ("bf16", 2e-2)):
            with self.subTest(precision), warnings.catch_warnings():
                warnings.simplefilter("error")
                AcceleratorState._reset_state(True)
                accelerator, losses = self.steps(precision)
                self.assertEqual(accelerator.device, torch.device("ocl", 0))
                self.near(losses, want, limit)
                if precision == "fp16":
                    self.assertEqual(accelerator.scaler._device, "ocl")
                    self.assertTrue(accelerator.scaler.is_enabled())

    def test_checkpoints_have_random_states(self) -> None:
        accelerator, _ = self.steps()
        accelerator.save_state(str(self.folder))
        want = torch.rand(5, device="ocl")
        accelerator.load_state(str(self.folder))
        self.assertTrue(torch.equal(torch.rand(5, device="ocl"), want))
        (self.folder / "random_states_ocl_0.pt").unlink()  # written where there was no ocl
        accelerator.load_state(str(self.folder))

    def test_balanced_memory(self) -> None:
        from accelerate.utils import get_balanced_memory

        given = {0: 10_000, 1: 10_000}  # of 432 bytes some on the first, with room for a layer
        first = get_balanced_memory(self.model, dict(given))[0]
        self.assertGreater(first, 200)
        self.assertLess(first, 1000)
        free = torch.ocl.mem_get_info(0)[0]
        if torch.ocl.device_count() == 1:  # a tenth is left for what is computed
            self.assertLess(get_balanced_memory(self.model)[0], 0.95 * free)

    def test_memory(self) -> None:
        from accelerate.utils import get_max_memory

        found = get_max_memory()
        self.assertEqual(list(found)[0], 0)
        self.assertGreater(found[0], 0)
        unified = torch.ocl.get_device_properties(0).has_unified_memory
        self.assertEqual("cpu" in found, not unified)
        given = get_max_memory({"cpu": "1GB", 0: "2MB"})
        self.assertEqual(list(given.items()), [(0, 2 * 10**6), ("cpu", 10**9)])
        with self.assertRaisesRegex(ValueError, "Device tpu is not recognized"):
            get_max_memory({"tpu": 1, 0: 1})

    def test_big_models(self) -> None:
        import accelerate
        from safetensors.torch import save_file

        model, want = self.model.eval(), self.model.eval()(self.x)
        file = str(self.folder / "model.safetensors")
        save_file(model.state_dict(), file, {"format": "pt"})
        offload = {"offload_folder": str(self.folder), "offload_state_dict": True}
        for name, place in {
            "cpu_offload": lambda m: accelerate.cpu_offload(m, torch.device("ocl")),
            "disk_offload": lambda m: accelerate.disk_offload(m, self.folder, torch.device("ocl")),
            "one device": lambda m: accelerate.dispatch_model(m, {"": "ocl"}),
            "three places": lambda m: accelerate.dispatch_model(
                m, {"0": 0, "1": "cpu", "2": "cpu", "3": "disk"}, offload_dir=self.folder
            ),
            "auto": lambda m: accelerate.load_checkpoint_and_dispatch(m, file, "auto"),
            "a map": lambda m: accelerate.load_checkpoint_and_dispatch(
                m, file, {"0": "cpu", "1": 0, "2": 0, "3": 0}, **offload
            ),
        }.items():
            with self.subTest(name):
                placed = place(copy.deepcopy(model).eval())
                near = self.x.to("ocl") if name in ("auto", "one device") else self.x
                got = placed(near)
                self.near(got, want)
                if name == "auto":
                    self.assertEqual(placed.hf_device_map, {"": 0})
                    self.assertEqual(got.device.type, "ocl")

    def test_two_processes(self) -> None:
        # As the command accelerate, which loads torch_ocl where that is installed.
        start = "import torch_ocl, accelerate.commands.accelerate_cli as cli; cli.main()"
        command = ("-c", start, "launch", "--num_processes", "2")
        command += ("--main_process_port", "0")
        want, ranks = by_one_process(), launch("accelerate_ranks.py", self.folder, *command)
        # float16 has 11 bits, of numbers near 1, over a few operations.
        for name, model, kind, limit in (
            ("ddp", "DistributedDataParallel", "MULTI_GPU", CLOSE),
            ("fp16", "DistributedDataParallel", "MULTI_GPU", 4e-3),
            ("fsdp2", "FSDPSequential", "FSDP", CLOSE),
        ):
            for rank, got in enumerate(ranks):
                with self.subTest(name, rank=rank):
                    self.assertEqual((got["backend"], got["ranks"]), ("ocl", 2))
                    got = got[name]
                    self.assertEqual((got["model"], got["type"]), (model, kind))
                    self.assertEqual(torch.device(got["device"]).type, "ocl")
                    self.assertEqual(got["scaler"], "ocl" if name == "fp16" else "None")
                    if rank == 0 or name != "fsdp2":  # which gives the first one the parameters
                        for key, value in want.items():
                            self.near(got[key], value, limit)
                    else:
                        self.near(got["losses"], want["losses"], limit)

    def test_launch_counts_devices(self) -> None:
        from accelerate.commands import launch as library

        parser = library.launch_command_parser()
        chosen = torch_ocl.integrations._device
        for given, alike, want in (
            ([], 1, (1, False)),
            ([], 2, (2, True)),
            (["--num_processes", "3"], 1, (3, True)),
            (["--num_processes", "3", "--cpu"], 1, (3, False)),
            (["--num_processes", "3", "--use_fsdp"], 1, (3, False)),
        ):
            with (
                self.subTest(given, alike=alike),
                unittest.mock.patch.object(chosen, "count_alike", return_value=alike),
                unittest.mock.patch.object(library, "default_config_file", "/none"),
            ):
                args = parser.parse_args([*given, "train.py"])
                args, *_ = library._validate_launch_command(args)
                self.assertIsInstance(args, argparse.Namespace)
                self.assertEqual((args.num_processes, args.multi_gpu), want)


if __name__ == "__main__":
    unittest.main()
