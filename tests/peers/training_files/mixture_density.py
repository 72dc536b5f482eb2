import math

import torch
from torch import nn


class MDN(nn.Module):
    def __init__(self, n_hidden=20, n_gaussians=5):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z_h = self.z_h(x)
        return torch.softmax(self.z_pi(z_h), -1), torch.exp(self.z_sigma(z_h)), self.z_mu(z_h)


model = MDN()
oneDivSqrtTwoPI = 1.0 / math.sqrt(2.0 * math.pi)


def gaussian_distribution(y, mu, sigma):
    result = (y.expand_as(mu) - mu) * torch.reciprocal(sigma)
    result = -0.5 * (result * result)
    return (torch.exp(result) * torch.reciprocal(sigma)) * oneDivSqrtTwoPI


def loss(x, y):
    pi, sigma, mu = model(x)
    result = torch.sum(gaussian_distribution(y, mu, sigma) * pi, dim=1)
    return torch.mean(-torch.log(result + 1e-8))


inputs = [(torch.randn(64, 1), torch.randn(64, 1)) for _ in range(2)]
