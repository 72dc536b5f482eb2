"""The critic of a GAN that grows (Karras et al., Progressive Growing of GANs, 2018): later stages have more layers.

Images of 4 by 4 to 32 by 32, 16 channels, 9,553 parameters; batches of 8; each stage is met twice.
Licence: our own code, under that of the project.
"""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, STAGES = 16, 4


class Critic(nn.Module):
    """From the layers of the largest images that there are now down to one score."""

    def __init__(self):
        super().__init__()
        self.into = nn.ModuleList(nn.Conv2d(3, WIDTH, 1) for _ in range(STAGES))
        self.layers = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(STAGES))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, images, stage):
        x = F.leaky_relu(self.into[stage](images), 0.2)
        for layer in range(stage, 0, -1):
            x = F.avg_pool2d(F.leaky_relu(self.layers[layer](x), 0.2), 2)
        return self.head(F.leaky_relu(self.layers[0](x), 0.2).mean((2, 3)))


torch.manual_seed(0)
model = Critic()
inputs = [
    (torch.randn(8, 3, 4 * 2**stage, 4 * 2**stage), torch.randn(8, 3, 4 * 2**stage, 4 * 2**stage), stage)
    for stage in range(STAGES)
    for _ in range(2)
]


def loss(real, made, stage):
    """The hinge loss of real and of made images."""
    return F.relu(1 - model(real, stage)).mean() + F.relu(1 + model(made, stage)).mean()
