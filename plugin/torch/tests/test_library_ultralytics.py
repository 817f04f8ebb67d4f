"""ultralytics on ocl: names of devices, training and prediction."""

import unittest

import torch
from library_case import Case, applied, needs, quiet


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
        for device, text in (("ocl:9", "there are 1 ocl"), ("ocl:0,1", "cannot train together")):
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


if __name__ == "__main__":
    unittest.main()
