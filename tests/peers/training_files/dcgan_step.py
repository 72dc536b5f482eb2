import torch
from torch import nn, optim

torch.manual_seed(0)


def weights_init(m):
    name = m.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


netG = nn.Sequential(
    nn.ConvTranspose2d(16, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
    nn.ConvTranspose2d(16, 1, 4, 2, 1, bias=False), nn.Tanh(),
)  # fmt: skip
netD = nn.Sequential(
    nn.Conv2d(1, 16, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(16, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2, inplace=True),
    nn.Flatten(), nn.Linear(64, 1), nn.Sigmoid(),
)  # fmt: skip
netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))


def train_step(real, noise):
    netD.zero_grad()
    b_size = real.size(0)
    real_label, fake_label = torch.ones(b_size), torch.zeros(b_size)
    errD_real = criterion(netD(real).view(-1), real_label)
    errD_real.backward()
    fake = netG(noise)
    errD_fake = criterion(netD(fake.detach()).view(-1), fake_label)
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    errG = criterion(netD(fake).view(-1), real_label)
    errG.backward()
    optimizerG.step()
    return (errD_real + errD_fake).item(), errG.item()


inputs = [(torch.randn(8, 1, 8, 8), torch.randn(8, 16, 1, 1)) for _ in range(2)]
