"""The convolutional network of PyTorch's MNIST example, with its dropout, on made-up images.

graphduel compare examples/frameworks/cnn.py:loss --framework torch
"""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.conv1(x)
        x = F.relu(x)
        x = self.conv2(x)
        x = F.relu(x)
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = self.fc1(x)
        x = F.relu(x)
        x = self.dropout2(x)
        x = self.fc2(x)
        output = F.log_softmax(x, dim=1)
        return output


def loss(model, data, target):
    output = model(data)
    return F.nll_loss(output, target)


def batches():
    torch.manual_seed(0)
    model = Net().train()
    return [(model, torch.rand(n, 1, 28, 28), torch.randint(0, 10, (n,))) for n in (16, 16, 8)]
