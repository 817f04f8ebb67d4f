"""torchvision's detectors on ocl, with random weights, against the CPU in float64: what they find,
and losses and gradients of a training step."""

import copy
import pathlib
import sys
import unittest
from functools import partial
from typing import Any
from unittest import mock

import torch
import torch_ocl  # noqa: F401

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests/oracle"))
import torchvision_library  # noqa: E402

VISION = torchvision_library.load()
# With two, the threads of a busy machine wait for each other at every operator.
torch.set_num_threads(1)
CLASSES, SIZES = 4, ((3, 60, 80), (3, 70, 56))
# Some hundred layers in float64; scores pass through softmax, and boxes are some hundred pixels.
TOLERANCE = {"rtol": 1e-7, "atol": 1e-7}


def setUpModule() -> None:
    if VISION is None:
        raise unittest.SkipTest("SKIPPED: torchvision is not installed; ./run test installs it")


def pyramid(detector: str) -> torch.nn.Module:
    """A detector on MobileNet's features, for images of about 70 pixels."""
    from torchvision.models import detection
    from torchvision.models.detection import anchor_utils, backbone_utils

    backbone = backbone_utils.mobilenet_backbone("mobilenet_v3_small", fpn=True, weights=None)
    levels = 3
    sizes = ((16, 32, 64),) * levels
    anchors = anchor_utils.AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * levels)
    small: dict[str, Any] = {"min_size": 64, "max_size": 80, "num_classes": CLASSES}
    if detector == "RetinaNet":
        return detection.RetinaNet(
            backbone, anchor_generator=anchors, detections_per_img=10, score_thresh=0.0, **small
        )
    if detector == "KeypointRCNN":
        small |= {"num_keypoints": 3, "num_classes": 2}
    return getattr(detection, detector)(
        backbone,
        rpn_anchor_generator=anchors,
        rpn_post_nms_top_n_test=16,
        rpn_post_nms_top_n_train=16,
        box_batch_size_per_image=16,
        box_detections_per_img=6,
        box_score_thresh=0.0,
        **small,
    )


def ssd_lite() -> torch.nn.Module:
    """torchvision's SSDlite, which takes images of 320 pixels alone, for smaller ones."""
    from torchvision.models import mobilenetv3
    from torchvision.models.detection import _utils, anchor_utils, ssd, ssdlite

    norm = partial(torch.nn.BatchNorm2d, eps=0.001, momentum=0.03)
    network = mobilenetv3.mobilenet_v3_small(weights=None, norm_layer=norm, reduced_tail=True)
    backbone = ssdlite._mobilenet_extractor(network, 6, norm)  # noqa: SLF001
    size = (96, 96)
    anchors = anchor_utils.DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)
    channels = _utils.retrieve_out_channels(backbone, size)
    head = ssdlite.SSDLiteHead(channels, anchors.num_anchors_per_location(), CLASSES, norm)
    return ssd.SSD(
        backbone, anchors, size, CLASSES, head=head, score_thresh=0.0, detections_per_img=10
    )


def model_of(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    model = ssd_lite() if name == "SSDlite" else pyramid(name)
    for p in model.parameters():  # of random weights the activations fade from layer to layer
        if p.dim() > 1:
            torch.nn.init.kaiming_normal_(p)
    return model.double()


def targets_of(name: str) -> list[dict[str, torch.Tensor]]:
    targets = []
    for _, high, wide in SIZES:
        corner = torch.rand(3, 2, dtype=torch.float64) * torch.tensor([wide, high]) / 2
        extent = 8 + torch.rand(3, 2, dtype=torch.float64) * 20
        boxes = torch.cat((corner, corner + extent), 1)
        most = 2 if name == "KeypointRCNN" else CLASSES
        target = {"boxes": boxes, "labels": torch.randint(1, most, (3,))}
        if name == "MaskRCNN":
            target["masks"] = (torch.rand(3, high, wide) > 0.5).to(torch.uint8)
        if name == "KeypointRCNN":
            places = corner[:, None] + extent[:, None] * torch.rand(3, 3, 2, dtype=torch.float64)
            seen = torch.ones(3, 3, 1)
            target["keypoints"] = torch.cat((places.float(), seen), 2)  # no other type is taken
        targets.append(target)
    return targets


def moved(value: Any, device: str) -> Any:
    if isinstance(value, dict):
        return {k: moved(v, device) for k, v in value.items()}
    return [moved(v, device) for v in value] if isinstance(value, list) else value.to(device)


class Detectors(unittest.TestCase):
    """The fallback is off: every operator has a kernel."""

    def pair(self, name: str) -> tuple[torch.nn.Module, torch.nn.Module, list[torch.Tensor]]:
        theirs = model_of(name)
        ours = copy.deepcopy(theirs).to("ocl")
        return ours, theirs, [torch.rand(size, dtype=torch.float64) for size in SIZES]

    def find(self, name: str) -> None:
        ours, theirs, images = self.pair(name)
        with torch.no_grad():
            wanted = theirs.eval()(images)
            found = ours.eval()(moved(images, "ocl"))
        self.assertGreater(sum(len(w["boxes"]) for w in wanted), 5)
        for image, other in zip(found, wanted, strict=True):
            self.assertEqual(set(image), set(other))
            for key, value in other.items():
                torch.testing.assert_close(image[key].cpu(), value, msg=key, **TOLERANCE)

    def train(self, name: str) -> None:
        ours, theirs, images = self.pair(name)
        targets = targets_of(name)
        draw = torch.randperm

        def drawn(n: int, device: Any = None, **kwargs: Any) -> torch.Tensor:
            return draw(n, **kwargs).to(device)  # the same choice of anchors on both devices

        results = []
        for model, device in ((theirs, "cpu"), (ours, "ocl")):
            torch.manual_seed(1)
            with mock.patch("torch.randperm", drawn):
                losses = model.train()(moved(images, device), moved(targets, device))
            sum(losses.values()).backward()
            gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
            results.append(losses | gradients)
        self.assertEqual(set(results[0]), set(results[1]))
        for key, value in results[0].items():
            # Gradients add up thousands of products: they are compared by their largest.
            scale = max(1.0, value.abs().max().item())
            torch.testing.assert_close(
                results[1][key].detach().cpu() / scale, value.detach() / scale, msg=key, **TOLERANCE
            )

    def check(self, name: str) -> None:
        self.find(name)
        self.train(name)

    def test_faster_rcnn(self) -> None:
        self.check("FasterRCNN")

    def test_mask_rcnn(self) -> None:
        self.check("MaskRCNN")

    def test_keypoint_rcnn(self) -> None:
        self.check("KeypointRCNN")

    def test_retina_net(self) -> None:
        self.check("RetinaNet")

    def test_ssd_lite(self) -> None:
        self.check("SSDlite")


if __name__ == "__main__":
    unittest.main()
