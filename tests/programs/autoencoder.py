"""A convolutional autoencoder with transposed convolutions, its parameters saved and loaded on the way."""

import numpy as np

import dynamic as torch
from dynamic import nn
from tests.programs import start


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ELU(), nn.Conv2d(4, 2, 3, stride=2, padding=1)
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1),
            nn.ELU(),
            nn.ConvTranspose2d(4, 1, 4, stride=2, padding=1),
            nn.Tanh(),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


x = torch.tensor(np.tanh(np.random.default_rng(0).standard_normal((5, 1, 8, 8))).astype(np.float32))
model = start(Autoencoder())
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
criterion = nn.SmoothL1Loss()
losses = []
for step in range(6):
    loss = criterion(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step == 2:
        saved = {name: value.clone() for name, value in model.state_dict().items()}
        kept = optimizer.state_dict()
        model = Autoencoder()
        model.load_state_dict(saved)
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        optimizer.load_state_dict(kept)
