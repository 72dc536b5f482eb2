"""MobileNetV3, small.

Inverted residuals: a wider 1 x 1 convolution, one for each channel, squeeze and excitation, and back.
Source: Howard et al., Searching for MobileNetV3, 2019 (arXiv:1905.02244).
Licence: our own code, under that of the project.
Sizes: the eleven blocks of the small network at half its width, images of 32 x 32, batches of 8.
"""

import torch
import torch.nn.functional as F
from torch import nn

# kernel, expanded width, width, squeeze and excitation, hard swish (else ReLU), stride
BLOCKS = (
    (3, 8, 8, True, False, 2), (3, 36, 12, False, False, 2), (3, 44, 12, False, False, 1), (5, 48, 20, True, True, 2),
    (5, 120, 20, True, True, 1), (5, 120, 20, True, True, 1), (5, 60, 24, True, True, 1), (5, 72, 24, True, True, 1),
    (5, 144, 48, True, True, 2), (5, 288, 48, True, True, 1), (5, 288, 48, True, True, 1),
)  # fmt: skip


def normed(width, out, kernel, stride=1, groups=1):
    convolution = nn.Conv2d(width, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(out))


class SqueezeExcite(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x):
        scale = self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1))))
        return x * F.hardsigmoid(scale)


class InvertedResidual(nn.Module):
    def __init__(self, width, kernel, expanded, out, excites, hard, stride):
        super().__init__()
        activation = nn.Hardswish if hard else nn.ReLU
        self.is_residual = stride == 1 and width == out
        self.layers = nn.Sequential(
            normed(width, expanded, 1), activation(),
            normed(expanded, expanded, kernel, stride, expanded), activation(),
            SqueezeExcite(expanded) if excites else nn.Identity(),
            normed(expanded, out, 1),
        )  # fmt: skip

    def forward(self, x):
        return x + self.layers(x) if self.is_residual else self.layers(x)


class MobileNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        width, layers = 8, [normed(3, 8, 3, 1), nn.Hardswish()]
        for kernel, expanded, out, excites, hard, stride in BLOCKS:
            layers.append(InvertedResidual(width, kernel, expanded, out, excites, hard, stride))
            width = out
        self.features = nn.Sequential(*layers, normed(width, 288, 1), nn.Hardswish())
        self.head = nn.Sequential(nn.Linear(288, 256), nn.Hardswish(), nn.Linear(256, classes))

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def loss(model, images, labels):
    return F.cross_entropy(model(images), labels)


def batches():
    torch.manual_seed(0)
    model = MobileNet()
    return [(model, torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))) for _ in range(3)]
