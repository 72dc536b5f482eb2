import torch
from torch import nn


class EmbeddingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convnet = nn.Sequential(nn.Conv2d(1, 8, 5), nn.PReLU(), nn.MaxPool2d(2, stride=2))
        self.fc = nn.Sequential(nn.Linear(8 * 4 * 4, 32), nn.PReLU(), nn.Linear(32, 2))

    def forward(self, x):
        output = self.convnet(x)
        output = output.view(output.size()[0], -1)
        return self.fc(output)


net = EmbeddingNet()
criterion = nn.TripletMarginLoss(margin=1.0)


def loss(anchor, positive, negative):
    return criterion(net(anchor), net(positive), net(negative))


inputs = [tuple(torch.randn(8, 1, 12, 12) for _ in range(3)) for _ in range(2)]
