"""ConvNeXt, of the size called atto.

Convolutions of 7 x 7 for each channel, layer normalisation, GELU, and a learned scale on each residual.
Source: Liu et al., A ConvNet for the 2020s, 2022 (arXiv:2201.03545); depths and widths of atto are those of timm.
Licence: our own code, under that of the project.
Sizes: depths 2, 2, 6, 2 as published, a quarter of its widths, images of 64 x 64, batches of 4.
"""

import torch
import torch.nn.functional as F
from torch import nn

DEPTHS, WIDTHS = (2, 2, 6, 2), (12, 20, 40, 80)


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.spatial = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x):
        hidden = self.norm(self.spatial(x).permute(0, 2, 3, 1))
        hidden = self.scale * self.down(F.gelu(self.up(hidden)))
        return x + hidden.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        layers = [nn.Conv2d(3, WIDTHS[0], 4, 4), ChannelNorm(WIDTHS[0])]
        for stage, (depth, width) in enumerate(zip(DEPTHS, WIDTHS, strict=True)):
            if stage:
                layers += [ChannelNorm(WIDTHS[stage - 1]), nn.Conv2d(WIDTHS[stage - 1], width, 2, 2)]
            layers += [Block(width) for _ in range(depth)]
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(WIDTHS[-1]), nn.Linear(WIDTHS[-1], classes)

    def forward(self, x):
        return self.head(self.norm(self.layers(x).mean((2, 3))))


def loss(model, images, labels):
    return F.cross_entropy(model(images), labels, label_smoothing=0.1)


def batches():
    torch.manual_seed(0)
    model = ConvNeXt()
    return [(model, torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,))) for _ in range(3)]
