"""ResNet-18 (He et al., Deep Residual Learning for Image Recognition, CVPR 2016) on images of 32 by 32.

The stem is the one for small images, a convolution of 3 by 3 without pooling. A quarter of the channels, 16 to 128;
701,466 parameters; batches of 8.
Licence: our own code, under that of the project.
"""

import torch
from torch import nn
from torch.nn import functional as F

WIDTHS = (16, 32, 64, 128)


class Block(nn.Module):
    """Two convolutions of 3 by 3, each normalised, and a shortcut around both."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.shortcut = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """Four stages of two blocks, and a linear layer over the mean of each channel."""

    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, WIDTHS[0], 3, 1, 1, bias=False), nn.BatchNorm2d(WIDTHS[0]), nn.ReLU())
        blocks = []
        for stage, width in enumerate(WIDTHS):
            blocks += [Block(WIDTHS[max(stage - 1, 0)], width, 2 if stage else 1), Block(width, width, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(WIDTHS[-1], classes)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


torch.manual_seed(0)
model = ResNet18()
inputs = [(torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,)))]


def loss(images, labels):
    """The cross entropy of a batch."""
    return F.cross_entropy(model(images), labels)
