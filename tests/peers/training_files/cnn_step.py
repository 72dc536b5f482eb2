import torch
from torch import nn, optim

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
    nn.Linear(16 * 5 * 5, 10),
)  # fmt: skip
optimizer = optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()


def train_step(x, y):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


inputs = [(torch.randn(16, 1, 14, 14), torch.randint(0, 10, (16,))) for _ in range(2)]
