"""A convolutional network with batch norm and pooling, in training and then in evaluation."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
import dynamic.nn.functional as F
import dynamic.optim as optim
from tests.programs import start

rng = np.random.default_rng(0)
images = rng.standard_normal((12, 1, 12, 12)).astype(np.float32)
labels = rng.integers(0, 4, 12)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(4, 6, kernel_size=3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((1, 1)),
        )
        self.classifier = nn.Linear(6, 4)

    def forward(self, x):
        x = self.features(x)
        x = x.view(x.shape[0], -1)
        return F.log_softmax(self.classifier(x), dim=1)


model = start(Net())
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
losses = []
for _ in range(3):
    for i in range(0, 12, 6):
        optimizer.zero_grad()
        output = model(torch.tensor(images[i : i + 6]))
        loss = F.nll_loss(output, torch.tensor(labels[i : i + 6]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
model.eval()
losses.append(F.nll_loss(model(torch.tensor(images)), torch.tensor(labels)).item())
losses += model.state_dict()["features.1.running_var"].tolist()
