import torch
import torch.nn.functional as F
from torch import nn


class DoubleConv(nn.Module):
    def __init__(self, in_ch, out_ch):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_ch, out_ch, 3, padding=1, bias=False), nn.BatchNorm2d(out_ch), nn.ReLU(inplace=True),
            nn.Conv2d(out_ch, out_ch, 3, padding=1, bias=False), nn.BatchNorm2d(out_ch), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(1, 6)
        self.down = nn.Sequential(nn.MaxPool2d(2), DoubleConv(6, 12))
        self.up = nn.ConvTranspose2d(12, 6, 2, stride=2)
        self.conv = DoubleConv(12, 6)
        self.outc = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.up(self.down(x1))
        diff_y, diff_x = x1.size(2) - x2.size(2), x1.size(3) - x2.size(3)
        x2 = F.pad(x2, [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2])
        return self.outc(self.conv(torch.cat([x1, x2], dim=1)))


model = UNet()


def dice_loss(probs, target, epsilon=1e-6):
    inter = 2 * (probs * target).sum(dim=(-1, -2))
    sets = probs.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    return 1 - ((inter + epsilon) / (sets + epsilon)).mean()


def loss(images, masks):
    pred = model(images).squeeze(1)
    return F.binary_cross_entropy_with_logits(pred, masks) + dice_loss(torch.sigmoid(pred), masks)


inputs = [(torch.randn(4, 1, 16, 16), (torch.rand(4, 16, 16) > 0.5).float()) for _ in range(2)]
