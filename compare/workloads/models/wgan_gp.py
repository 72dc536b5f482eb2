"""A Wasserstein GAN's critic, whose loss holds the gradient of the critic itself.

Source: Gulrajani et al., Improved Training of Wasserstein GANs, 2017 (arXiv:1704.00028).
Licence: our own code, under that of the project.
Sizes: images of 16 x 16, three convolutions from width 16, batches of 8.
"""

import torch
from torch import nn

PENALTY = 10.0


def loss(critic, real, made, mixing):
    between = (mixing * real + (1 - mixing) * made).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    norm = slopes.flatten(1).norm(dim=1)
    return critic(made).mean() - critic(real).mean() + PENALTY * (norm - 1).square().mean()


def batches():
    torch.manual_seed(0)
    layers = []
    for width, out in ((1, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(width, out, 4, 2, 1), nn.LeakyReLU(0.2)]
    critic = nn.Sequential(*layers, nn.Flatten(), nn.Linear(256, 1))
    return [(critic, torch.randn(8, 1, 16, 16), torch.randn(8, 1, 16, 16), torch.rand(8, 1, 1, 1)) for _ in range(3)]
