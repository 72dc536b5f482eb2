"""A diffusion model: a network learns the noise that was added to an image.

Residual blocks know the time by an embedding of sines; groups are normalised, and the coarsest level attends.
Source: Ho et al., Denoising Diffusion Probabilistic Models, 2020 (arXiv:2006.11239).
Licence: our own code, under that of the project.
Sizes: images of 16 x 16, widths 16 and 32, 100 times, batches of 8.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

TIMES, WIDTH = 100, 16


def embedded(time, width):
    rates = torch.exp(torch.arange(width // 2, device=time.device) * (-math.log(10000.0) / (width // 2 - 1)))
    angles = time[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Block(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, width), nn.Conv2d(width, out, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, out), nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(4 * WIDTH, out)
        self.shortcut = nn.Conv2d(width, out, 1) if width != out else nn.Identity()

    def forward(self, x, time):
        hidden = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(hidden)))


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.GroupNorm(4, width),
            nn.Conv2d(width, 3 * width, 1),
            nn.Conv2d(width, width, 1),
        )

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, dim=2)
        read = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(read.transpose(1, 2).reshape(x.shape))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.02, TIMES), dim=0))
        self.time = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, 4 * WIDTH), nn.SiLU())
        self.first = nn.Conv2d(1, WIDTH, 3, padding=1)
        self.above, self.shrink = Block(WIDTH, WIDTH), nn.Conv2d(WIDTH, WIDTH, 3, 2, 1)
        self.below, self.attention = Block(WIDTH, 2 * WIDTH), Attention(2 * WIDTH)
        self.after = Block(3 * WIDTH, WIDTH)
        self.last = nn.Sequential(nn.GroupNorm(4, WIDTH), nn.SiLU(), nn.Conv2d(WIDTH, 1, 3, padding=1))

    def forward(self, x, time):
        time = self.time(embedded(time, WIDTH).to(x.dtype))
        fine = self.above(self.first(x), time)
        coarse = self.attention(self.below(self.shrink(fine), time))
        grown = F.interpolate(coarse, scale_factor=2, mode="nearest")
        return self.last(self.after(torch.cat([fine, grown], dim=1), time))


def loss(model, images, time, noise):
    kept = model.kept[time][:, None, None, None]
    noisy = kept.sqrt() * images + (1 - kept).sqrt() * noise
    return F.mse_loss(model(noisy, time), noise)


def batches(size=8):
    torch.manual_seed(0)
    model = Denoiser()
    shape = (size, 1, 16, 16)
    return [(model, torch.randn(shape), torch.randint(0, TIMES, (size,)), torch.randn(shape)) for _ in range(3)]
