"""Two layers of nn.TransformerEncoder that classify padded sequences, with a schedule that warms up."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
from dynamic.optim import AdamW
from dynamic.optim.lr_scheduler import LambdaLR
from tests.programs import start

rng = np.random.default_rng(0)
tokens = rng.integers(1, 12, (6, 9))
lengths = np.array([9, 7, 4, 9, 5, 6])
tokens[np.arange(9) >= lengths[:, None]] = 0
labels = rng.integers(0, 3, 6)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 16, padding_idx=0)
        layer = nn.TransformerEncoderLayer(16, 4, dim_feedforward=24, dropout=0.0, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 3))

    def forward(self, x):
        padding = x == 0
        hidden = self.encoder(self.embed(x), src_key_padding_mask=padding)
        kept = torch.where(padding, torch.tensor(0.0), torch.tensor(1.0)).unsqueeze(-1)
        return self.head((hidden * kept).sum(1) / kept.sum(1))


model = start(Classifier())
optimizer = AdamW(model.parameters(), lr=1e-2)
scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
losses = []
for _ in range(6):
    loss = nn.functional.cross_entropy(model(torch.tensor(tokens)), torch.tensor(labels), label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
