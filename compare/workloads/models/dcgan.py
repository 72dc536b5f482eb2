"""DCGAN: a whole training step of discriminator and generator.

Two optimizers; the generator learns through the discriminator.
Source: Radford et al., Unsupervised Representation Learning with DCGANs, 2015 (arXiv:1511.06434).
Licence: our own code, under that of the project.
Sizes: width 16, images of 32 x 32, batches of 8.
"""

import torch
import torch.nn.functional as F
from torch import nn

NOISE, WIDTH = 32, 16

torch.manual_seed(0)
generator = nn.Sequential(
    nn.ConvTranspose2d(NOISE, 4 * WIDTH, 4, 1, 0, bias=False), nn.BatchNorm2d(4 * WIDTH), nn.ReLU(),
    nn.ConvTranspose2d(4 * WIDTH, 2 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.ReLU(),
    nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(),
    nn.ConvTranspose2d(WIDTH, 1, 4, 2, 1), nn.Tanh(),
)  # fmt: skip
discriminator = nn.Sequential(
    nn.Conv2d(1, WIDTH, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Conv2d(WIDTH, 2 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.LeakyReLU(0.2),
    nn.Conv2d(2 * WIDTH, 4 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * WIDTH), nn.LeakyReLU(0.2),
    nn.Conv2d(4 * WIDTH, 1, 4), nn.Flatten(0),
)  # fmt: skip
of_generator = torch.optim.SGD(generator.parameters(), lr=0.01, momentum=0.5)
of_discriminator = torch.optim.SGD(discriminator.parameters(), lr=0.01, momentum=0.5)


def judged(images, label):
    logits = discriminator(images)
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))


def step(images, noise):
    of_discriminator.zero_grad()
    made = generator(noise)
    error = judged(images, 1.0) + judged(made.detach(), 0.0)
    error.backward()
    of_discriminator.step()
    of_generator.zero_grad()
    judged(made, 1.0).backward()
    of_generator.step()
    return error.detach()


def batches():
    torch.manual_seed(1)
    return [(torch.rand(8, 1, 32, 32) * 2 - 1, torch.randn(8, NOISE, 1, 1)) for _ in range(3)]
