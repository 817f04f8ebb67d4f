"""ultralytics trains with device="ocl:0,1", for which it starts two ranks."""

import pathlib
import sys

from launched_case import PLUGIN, answer, used

sys.path.append(str(PLUGIN / "examples/libraries"))
import detect  # noqa: E402
import torch  # noqa: E402


class Tell:
    """A callback; ranks get it with the trainer, before anything imports torchvision."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __setstate__(self, state) -> None:
        import torchvision_library

        torchvision_library.load()  # as detect does in this process
        self.__dict__ = state

    def __call__(self, trainer) -> None:
        from ultralytics.utils import RANK

        answer(
            self.folder,
            RANK,
            model=type(trainer.model).__name__,
            device=str(trainer.device),
            loss={name: float(value) for name, value in trainer.tloss.items()},
            parameters=torch.cat([p.detach().flatten().cpu() for p in trainer.model.parameters()]),
            **used(),
        )


folder = pathlib.Path(sys.argv[1])
model = detect.YOLO("yolo11n.yaml")
model.add_callback("on_train_epoch_end", Tell(str(folder)))
model.train(
    data=str(detect.draw(folder / "data", 16)),
    epochs=1,
    imgsz=detect.SIZE,
    batch=8,
    device="ocl:0,1",
    amp=False,
    workers=0,
    project=str(folder / "runs"),
    plots=False,
    verbose=False,
)
