"""Finds objects in a picture with a detector of torchvision, and draws boxes around them.

usage: detect_objects.py [PICTURE] [--weights DEFAULT|FILE] [--model ssdlite320_mobilenet_v3_large]
                         [--least 0.5] [--device ocl] [--save found.png]

--weights DEFAULT loads torchvision's own weights, over the network once; FILE is a saved
state_dict. Without weights they are random, and without a PICTURE one is drawn: boxes mean nothing
then, and the ten most likely are shown. The models are those of torchvision.models.detection, such
as fasterrcnn_resnet50_fpn_v2, retinanet_resnet50_fpn_v2, maskrcnn_resnet50_fpn.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from PIL import Image, ImageDraw
from torchvision.models import detection, get_model, get_model_weights
from torchvision.transforms.functional import pil_to_tensor

SHOWN = 10  # boxes, where weights are random


def load(name: str, weights: str) -> tuple[torch.nn.Module, list[str]]:
    """The detector, and the names of what it knows."""
    known = get_model_weights(name).DEFAULT
    names = known.meta["categories"]
    torch.manual_seed(0)
    if weights == "DEFAULT":
        return get_model(name, weights=known).eval(), names
    # With random weights every box is to be kept; the families call their threshold differently.
    key = "box_score_thresh" if "rcnn" in name else "score_thresh"
    kept = {} if weights else {key: 0.0}
    model = get_model(name, weights=None, weights_backbone=None, num_classes=len(names), **kept)
    if weights:
        model.load_state_dict(torch.load(weights, weights_only=True))
    return model.eval(), names


def drawn() -> Image.Image:
    """A red disc and a blue square on grey."""
    picture = Image.new("RGB", (320, 240), (90, 90, 90))
    draw = ImageDraw.Draw(picture)
    draw.ellipse((40, 60, 120, 140), (220, 40, 40))
    draw.rectangle((190, 90, 270, 170), (40, 60, 220))
    return picture


@torch.no_grad()
def detect(
    model: torch.nn.Module, picture: Image.Image, device: str
) -> tuple[dict[str, torch.Tensor], float]:
    """Boxes [n, 4] in pixels, labels [n] and scores [n], best first, on the CPU; and seconds."""
    image = pil_to_tensor(picture).to(device).float() / 255
    start = time.perf_counter()
    (found,) = model.to(device)([image])
    found = {name: tensor.cpu() for name, tensor in found.items()}  # waits
    return found, time.perf_counter() - start


def show(picture: Image.Image, found: dict[str, torch.Tensor], names: list[str]) -> Image.Image:
    draw = ImageDraw.Draw(picture)
    for box, label, score in zip(found["boxes"], found["labels"], found["scores"]):
        text = f"{names[label]} {score:.2f}"
        corners = [round(number) for number in box.tolist()]
        draw.rectangle(corners, outline=(255, 200, 0), width=2)
        draw.text((corners[0] + 3, corners[1] + 2), text, (255, 200, 0))
        print(f"  {text:24} {corners}")
    return picture


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("picture", nargs="?")
    p.add_argument("--weights", default="")
    p.add_argument("--model", default="ssdlite320_mobilenet_v3_large", choices=models())
    p.add_argument("--least", type=float, default=0.5, help="the least score that is shown")
    p.add_argument("--device", default="ocl")
    p.add_argument("--save", default="found.png")
    options = p.parse_args()
    model, names = load(options.model, options.weights)
    picture = Image.open(options.picture).convert("RGB") if options.picture else drawn()
    _, first = detect(model, picture, options.device)
    found, seconds = detect(model, picture, options.device)
    count = int((found["scores"] >= options.least).sum()) if options.weights else SHOWN
    found = {name: tensor[:count] for name, tensor in found.items()}
    show(picture, found, names).save(options.save)
    print(
        f"{options.device}: {len(found['scores'])} boxes in {seconds:.2f} s (first call "
        f"{first:.2f} s, which may compile); saved as {options.save}"
    )
    return 0


def models() -> list[str]:
    from torchvision.models import list_models

    return list_models(module=detection)


if __name__ == "__main__":
    sys.exit(main())
