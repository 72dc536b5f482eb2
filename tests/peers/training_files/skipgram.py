import torch
import torch.nn.functional as F
from torch import nn


class SkipGram(nn.Module):
    def __init__(self, vocab_size=200, dim=24):
        super().__init__()
        self.in_embed = nn.Embedding(vocab_size, dim)
        self.out_embed = nn.Embedding(vocab_size, dim)
        self.in_embed.weight.data.uniform_(-1, 1)
        self.out_embed.weight.data.uniform_(-1, 1)

    def forward(self, center, context, negative):
        v, u, n = self.in_embed(center), self.out_embed(context), self.out_embed(negative)
        positive = F.logsigmoid((v * u).sum(1))
        negatives = F.logsigmoid(-torch.bmm(n, v.unsqueeze(2)).squeeze(2)).sum(1)
        return -(positive + negatives).mean()


model = SkipGram()


def loss(center, context, negative):
    return model(center, context, negative)


inputs = [tuple(torch.randint(0, 200, size) for size in ((64,), (64,), (64, 5))) for _ in range(2)]
