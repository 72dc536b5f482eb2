import torch
from torch import autograd, nn

critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))


def gradient_penalty(real, fake):
    alpha = torch.rand(real.size(0), 1)
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(interpolates)
    gradients = autograd.grad(
        outputs=scores, inputs=interpolates, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def critic_loss(real, noise):
    fake = generator(noise).detach()
    return critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(real, fake)


inputs = [(torch.randn(32, 2), torch.randn(32, 4)) for _ in range(2)]
