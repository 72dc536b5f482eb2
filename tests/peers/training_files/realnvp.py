import torch
from torch import distributions, nn


class RealNVP(nn.Module):
    def __init__(self, masks):
        super().__init__()
        self.mask = nn.Parameter(masks, requires_grad=False)
        self.t = nn.ModuleList([self.net(nn.Identity()) for _ in range(len(masks))])
        self.s = nn.ModuleList([self.net(nn.Tanh()) for _ in range(len(masks))])

    def net(self, last):
        return nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(), nn.Linear(32, 2), last)

    def forward(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J = log_det_J - s.sum(dim=1)
        return z, log_det_J


flow = RealNVP(torch.tensor([[0.0, 1.0], [1.0, 0.0]] * 3))
prior = distributions.Normal(torch.zeros(2), torch.ones(2))


def loss(x):
    z, logp = flow(x)
    return -(prior.log_prob(z).sum(1) + logp).mean()


inputs = [(torch.randn(64, 2),) for _ in range(2)]
