"""kornia on ocl, with its integration: filters and augmentations, equal to the CPU's."""

import unittest

import torch
from library_case import Case, applied, needs


@needs("kornia")
class Kornia(Case):
    def test_filters(self) -> None:
        import kornia

        x = torch.rand(2, 3, 16, 16)
        for name, function in {
            "gaussian": lambda x: kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)),
            "sobel": kornia.filters.sobel,
            "hsv": kornia.color.rgb_to_hsv,
            "rotate": lambda x: kornia.geometry.rotate(x, torch.tensor(30.0, device=x.device)),
        }.items():
            with self.subTest(name):
                self.near(function(x.to("ocl")), function(x), 1e-4)

    def test_augmentations(self) -> None:
        """Drawn on the CPU, for both devices the same."""
        import kornia.augmentation as K

        x = torch.rand(4, 3, 16, 16)
        for augment in (
            K.RandomHorizontalFlip(p=0.5),
            K.RandomAffine(20.0, (0.1, 0.1), p=0.5),
            K.RandomPerspective(0.4, p=0.5),
            K.RandomErasing(p=0.5),
            K.ColorJitter(0.2, 0.2, 0.2, 0.1, p=0.5),
            K.RandomGaussianBlur((3, 3), (0.5, 1.5), p=0.5),
            K.RandomResizedCrop((8, 8), p=1.0),
        ):
            with self.subTest(type(augment).__name__):
                torch.manual_seed(1)
                params = augment.forward_parameters(x.shape)
                want = augment(x, params)
                self.near(augment(x.to("ocl"), params), want, 1e-4)

    def test_autocast(self) -> None:
        import kornia.augmentation as K

        applied(self, "kornia")
        augment = K.RandomAffine(20.0, p=0.5)
        with torch.autocast("ocl"):
            self.assertEqual(augment(torch.rand(2, 3, 8, 8, device="ocl")).dtype, torch.float32)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
