"""A variational autoencoder; its noise is drawn by NumPy, so that both engines see the same."""

import numpy as np

import dynamic as torch
from dynamic import nn, optim
from dynamic.nn import functional as F
from tests.programs import start

rng = np.random.default_rng(0)
images = (rng.random((16, 20)) > 0.6).astype(np.float32)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 12)
        self.fc21 = nn.Linear(12, 3)
        self.fc22 = nn.Linear(12, 3)
        self.fc3 = nn.Linear(3, 12)
        self.fc4 = nn.Linear(12, 20)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 20))
        return self.decode(self.reparameterize(mu, logvar, eps)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = start(VAE())
optimizer = optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(8):
    eps = torch.tensor(rng.standard_normal((16, 3)).astype(np.float32))
    optimizer.zero_grad()
    recon, mu, logvar = model(torch.tensor(images), eps)
    loss = loss_function(recon, torch.tensor(images), mu, logvar)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
