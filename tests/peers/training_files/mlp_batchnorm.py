import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 64)
        self.bn = nn.BatchNorm1d(64)
        self.fc2 = nn.Linear(64, 5)

    def forward(self, x):
        return self.fc2(F.relu(self.bn(self.fc1(x))))


torch.manual_seed(0)
model = Net()


def loss(x, y):
    return F.cross_entropy(model(x), y)


inputs = [(torch.randn(32, 20), torch.randint(0, 5, (32,))) for _ in range(2)]
