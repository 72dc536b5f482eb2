"""A U-Net that segments.

A path down by pooling, a path up by transposed convolutions, and a shortcut at each resolution.
Source: Ronneberger et al., U-Net, 2015 (arXiv:1505.04597).
Licence: our own code, under that of the project.
Sizes: three resolutions from width 8, batch normalisation, images of three sizes as cropping leaves them, batches of 4.
"""

import torch
import torch.nn.functional as F
from torch import nn


def double(width, out):
    layers = []
    for inside in (width, out):
        layers += [nn.Conv2d(inside, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        widths = [width << level for level in range(depth)]
        self.down = nn.ModuleList(double(narrow, wide) for narrow, wide in zip([1, *widths], widths, strict=False))
        self.bottom = double(widths[-1], 2 * widths[-1])
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * wide, wide, 2, 2) for wide in reversed(widths))
        self.up = nn.ModuleList(double(2 * wide, wide) for wide in reversed(widths))
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        shortcuts = []
        for layer in self.down:
            x = layer(x)
            shortcuts.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for grow, layer in zip(self.grow, self.up, strict=True):
            x = layer(torch.cat([shortcuts.pop(), grow(x)], dim=1))
        return self.out(x)


def loss(model, images, masks):
    logits = model(images)
    shown = torch.sigmoid(logits)
    overlap = (2 * (shown * masks).sum() + 1) / (shown.sum() + masks.sum() + 1)
    return F.binary_cross_entropy_with_logits(logits, masks) + 1 - overlap


def batches():
    torch.manual_seed(0)
    model = UNet()
    sizes = (32, 48, 32, 40, 48, 32)
    return [(model, torch.randn(4, 1, n, n), (torch.rand(4, 1, n, n) > 0.5).float()) for n in sizes]
