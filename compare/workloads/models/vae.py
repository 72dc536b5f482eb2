"""A variational autoencoder: a whole training step with Adam.

The latent code is drawn in the step, from noise that the call brings along, so that all modes draw the same.
Source: Kingma and Welling, Auto-Encoding Variational Bayes, 2013 (arXiv:1312.6114).
Licence: our own code, under that of the project.
Sizes: 784 pixels, 256 hidden units, 20 latent ones, batches of 64, the last one of 40.
"""

import torch
import torch.nn.functional as F
from torch import nn

PIXELS, HIDDEN, LATENT = 784, 256, 20


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(PIXELS, HIDDEN)
        self.mean, self.spread = nn.Linear(HIDDEN, LATENT), nn.Linear(HIDDEN, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, PIXELS))

    def forward(self, x, noise):
        hidden = F.relu(self.encoder(x))
        mean, log_variance = self.mean(hidden), self.spread(hidden)
        return self.decoder(mean + noise * torch.exp(0.5 * log_variance)), mean, log_variance


torch.manual_seed(0)
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def step(images, noise):
    optimizer.zero_grad()
    logits, mean, log_variance = model(images, noise)
    misfit = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean**2 - log_variance.exp())
    loss = (misfit + divergence) / len(images)
    loss.backward()
    optimizer.step()
    return loss.detach()


def batches():
    torch.manual_seed(1)
    return [(torch.rand(n, PIXELS), torch.randn(n, LATENT)) for n in (64, 64, 64, 40)]
