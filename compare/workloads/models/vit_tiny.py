"""A vision transformer, tiny.

Patches become tokens, a learned class token is read at the end; layers normalise first.
Source: Dosovitskiy et al., An Image is Worth 16x16 Words, 2020 (arXiv:2010.11929); the width of tiny is that of DeiT.
Licence: our own code, under that of the project.
Sizes: width 192 and 3 heads as published, 4 layers of 12, images of 32 x 32 in patches of 4, batches of 4.
"""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, PATCH = 192, 3, 4, 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attended(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))

    def forward(self, x):
        x = x + self.attended(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, size=32, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.first = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(torch.randn(1, 1 + (size // PATCH) ** 2, WIDTH) * 0.02)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, classes)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.first.expand(len(x), -1, -1), tokens], dim=1) + self.places
        return self.head(self.norm(self.layers(tokens))[:, 0])


def loss(model, images, labels):
    return F.cross_entropy(model(images), labels)


def batches():
    torch.manual_seed(0)
    model = VisionTransformer()
    return [(model, torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))) for _ in range(3)]
