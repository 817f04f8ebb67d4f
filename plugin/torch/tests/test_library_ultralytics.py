"""ultralytics on ocl: names of devices, training and prediction, two processes."""

import math
import unittest

import torch
from launched_case import launch
from library_case import Case, applied, needs, quiet, takes_long


@needs("ultralytics", "cv2")
class Ultralytics(Case):
    def test_devices(self) -> None:
        import detect  # noqa: F401  imports ultralytics beside torch's CPU build
        from ultralytics.utils.torch_utils import parse_device, select_device

        applied(self, "ultralytics")
        for device in ("ocl", "ocl:0", "OCL", torch.device("ocl"), torch.device("ocl", 0)):
            self.assertEqual(select_device(device, verbose=False), torch.device("ocl", 0))
        self.assertEqual(select_device("cpu", verbose=False).type, "cpu")
        self.assertEqual(parse_device("ocl:0"), "ocl:0")
        self.assertEqual(select_device("ocl:0,1", verbose=False), torch.device("ocl", 0))
        for device, text in (
            ("ocl:9", "there are 1 ocl"),
            ("ocl:0,0", "ocl:0,1 for several"),
            ("ocl:0,x", "ocl:0,1 for several"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                select_device(device)

    def test_train_and_predict(self) -> None:
        import detect

        for amp in (False, True):
            with self.subTest(amp=amp), quiet():
                model, trainer, _ = detect.train("ocl", 1, amp, count=8)
                self.assertEqual(trainer.device.type, "ocl")
                self.assertEqual((trainer.amp, trainer.scaler.is_enabled()), (amp, amp))
                self.assertTrue(all(map(torch.isfinite, map(torch.tensor, trainer.tloss.values()))))
                found = []
                for device in ("ocl", "cpu"):
                    model.predictor = None
                    found.append(detect.boxes(model, device))
                self.near(found[0], found[1], detect.LIMIT)

    @needs("cloudpickle")
    @takes_long
    def test_two_processes(self) -> None:
        """Its batch norms see each rank's part, and its augmentations follow the rank: no results
        are those of one process."""
        ranks = launch("detect_ranks.py", self.folder)
        for got in ranks:
            self.assertEqual((got["backend"], got["ranks"]), ("ocl", 2))
            self.assertEqual(got["model"], "DistributedDataParallel")
            self.assertEqual(torch.device(got["device"]).type, "ocl")
            self.assertTrue(all(math.isfinite(value) for value in got["loss"].values()))
        first, second = ranks
        self.assertNotEqual(first["loss"], second["loss"])
        self.assertTrue(torch.equal(first["parameters"], second["parameters"]))


if __name__ == "__main__":
    unittest.main()
