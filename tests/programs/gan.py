"""A GAN on points of a circle: two optimizers, detached fakes."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
from tests.programs import start

rng = np.random.default_rng(0)
generator = start(nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 2)), 1)
discriminator = start(nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid()), 2)
criterion = nn.BCELoss()
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
real_label, fake_label = torch.ones(8, 1), torch.zeros(8, 1)
losses = []
for _ in range(6):
    angle = rng.uniform(0, 2 * np.pi, 8)
    real = torch.tensor(np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32))
    noise = torch.tensor(rng.standard_normal((8, 4)).astype(np.float32))
    discriminator.zero_grad()
    loss_real = criterion(discriminator(real), real_label)
    loss_real.backward()
    fake = generator(noise)
    loss_fake = criterion(discriminator(fake.detach()), fake_label)
    loss_fake.backward()
    optimizer_d.step()
    generator.zero_grad()
    loss_g = criterion(discriminator(fake), real_label)
    loss_g.backward()
    optimizer_g.step()
    losses += [(loss_real + loss_fake).item(), loss_g.item()]
