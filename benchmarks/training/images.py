"""Training steps on images: convolutions of every kind, and what replaces them."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.training import Step, Torch, classifying, labels, normal, parameters, training


def cnn(torch: Torch) -> Step:
    """Two layers of 5 × 5 convolution on 28 × 28 pixels, with pooling, 50 images."""
    nn: Any = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip
    return classifying(torch, model, normal(torch, 50, 1, 28, 28), labels(torch, 10, 50))


def resnet(torch: Torch) -> Step:
    """Three residual blocks with batch norm, 16 to 64 channels on 32 × 32 pixels, 16 images."""
    nn: Any = torch.nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
                nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after),
            )  # fmt: skip
            wider = (nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
            self.beside = nn.Sequential(*(wider if stride > 1 else ()))

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.inner(x) + self.beside(x))

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), Block(16, 16, 1), Block(16, 32, 2),
        Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    return classifying(torch, model, normal(torch, 16, 3, 32, 32), labels(torch, 10, 16))


def mobilenet(torch: Torch) -> Step:
    """Four depthwise separable blocks, 32 to 256 channels on 32 × 32 pixels, 16 images; SGD with momentum and decay."""
    nn: Any = torch.nn

    def block(before: int, after: int, stride: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(before, before, 3, stride, 1, groups=before, bias=False), nn.BatchNorm2d(before), nn.ReLU6(),
            nn.Conv2d(before, after, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU6(),
        )  # fmt: skip

    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(), block(32, 64, 1), block(64, 128, 2),
        block(128, 128, 1), block(128, 256, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip
    x, y = normal(torch, 16, 3, 32, 32), labels(torch, 10, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=4e-5)
    return training(torch, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def convnext(torch: Torch) -> Step:
    """Two blocks of 7 × 7 depthwise convolution and a perceptron, channels last, 48 channels, 8 images."""
    nn: Any = torch.nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
            self.norm = nn.LayerNorm(channels, eps=1e-6)
            self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
            self.scale = nn.Parameter(torch.ones(channels) * 1e-6)

        def forward(self, x: Any) -> Any:
            inner = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
            inner = self.scale * self.down(nn.functional.gelu(self.up(inner)))
            return x + inner.permute(0, 3, 1, 2)

    stem, body, head = nn.Conv2d(3, 48, 2, 2), nn.Sequential(Block(48), Block(48)), nn.Linear(48, 10)
    x, y = normal(torch, 8, 3, 32, 32), labels(torch, 10, 8)
    optimizer = torch.optim.AdamW(parameters(stem, body, head), lr=1e-3)
    return training(torch, optimizer, lambda: nn.functional.cross_entropy(head(body(stem(x)).mean([-2, -1])), y))


def unet(torch: Torch) -> Step:
    """Two levels down and up with 16 to 64 channels on 64 × 64 pixels, 4 images, RMSprop."""
    nn: Any = torch.nn

    def double(before: int, after: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
        )  # fmt: skip

    class UNet(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.deepest = double(1, 16), double(16, 32), double(32, 64)
            self.pool = nn.MaxPool2d(2)
            self.up2, self.after2 = nn.ConvTranspose2d(64, 32, 2, 2), double(64, 32)
            self.up1, self.after1 = nn.ConvTranspose2d(32, 16, 2, 2), double(32, 16)
            self.out = nn.Conv2d(16, 1, 1)

        def forward(self, x: Any) -> Any:
            first = self.first(x)
            second = self.second(self.pool(first))
            deepest = self.deepest(self.pool(second))
            second = self.after2(torch.cat([self.up2(deepest), second], 1))
            return self.out(self.after1(torch.cat([self.up1(second), first], 1)))

    model, x = UNet(), normal(torch, 4, 1, 64, 64)
    y, optimizer = (x > 0).float(), torch.optim.RMSprop(model.parameters(), lr=1e-4)
    return training(torch, optimizer, lambda: nn.functional.binary_cross_entropy_with_logits(model(x), y))


def dcgan(torch: Torch) -> Step:
    """A step of generator and discriminator on 32 × 32 pixels, 16 images, with upsampling, batch norm and dropout."""
    nn: Any = torch.nn

    def down(before: int, after: int) -> list[Any]:
        normed = [nn.BatchNorm2d(after, 0.8)] if before > 1 else []
        return [nn.Conv2d(before, after, 3, 2, 1), nn.LeakyReLU(0.2), nn.Dropout2d(0.25), *normed]

    def up(before: int, after: int) -> list[Any]:
        return [nn.Upsample(scale_factor=2), nn.Conv2d(before, after, 3, 1, 1), nn.BatchNorm2d(after, 0.8)]

    judge = nn.Sequential(
        *down(1, 16), *down(16, 32), *down(32, 64), *down(64, 128), nn.Flatten(), nn.Linear(128 * 4, 1), nn.Sigmoid()
    )
    start = nn.Linear(100, 128 * 8 * 8)
    drawing = nn.Sequential(
        nn.BatchNorm2d(128), *up(128, 128), nn.LeakyReLU(0.2), *up(128, 64), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 1, 3, 1, 1), nn.Tanh(),
    )  # fmt: skip
    settings = {"lr": 2e-4, "betas": (0.5, 0.999)}
    drawer = torch.optim.Adam(parameters(start, drawing), **settings)
    critic = torch.optim.Adam(judge.parameters(), **settings)
    loss, real, noise = nn.BCELoss(), normal(torch, 16, 1, 32, 32), normal(torch, 16, 100)
    true, false = torch.ones(16, 1), torch.zeros(16, 1)

    def step() -> Any:
        drawer.zero_grad()
        images = drawing(start(noise).view(16, 128, 8, 8))
        loss(judge(images), true).backward()
        drawer.step()
        critic.zero_grad()
        judged = (loss(judge(real), true) + loss(judge(images.detach()), false)) / 2
        judged.backward()
        critic.step()
        return judged

    return step


def diffusion(torch: Torch) -> Step:
    """The noise of 8 images of 28 × 28 pixels: residual blocks with group norm, SiLU and the time, at two scales."""
    nn: Any = torch.nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            self.norm1, self.conv1 = nn.GroupNorm(8, before), nn.Conv2d(before, after, 3, padding=1)
            self.norm2, self.conv2 = nn.GroupNorm(8, after), nn.Conv2d(after, after, 3, padding=1)
            self.time = nn.Linear(64, after)
            self.beside = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

        def forward(self, x: Any, time: Any) -> Any:
            silu = nn.functional.silu
            inner = self.conv1(silu(self.norm1(x))) + self.time(silu(time))[:, :, None, None]
            return self.conv2(silu(self.norm2(inner))) + self.beside(x)

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
            self.first, self.fine = nn.Conv2d(1, 32, 3, padding=1), Block(32, 32)
            self.down, self.coarse = nn.Conv2d(32, 32, 3, 2, 1), Block(32, 64)
            self.up, self.last = nn.Upsample(scale_factor=2), Block(96, 32)
            self.out = nn.Conv2d(32, 1, 3, padding=1)

        def forward(self, x: Any, times: Any) -> Any:
            angles = times[:, None].float() * torch.exp(torch.arange(16) * (-math.log(10000) / 15))[None]
            time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
            fine = self.fine(self.first(x), time)
            coarse = self.coarse(self.down(fine), time)
            return self.out(self.last(torch.cat([self.up(coarse), fine], 1), time))

    model, x, times = Net(), normal(torch, 8, 1, 28, 28), labels(torch, 1000, 8)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0)[times][:, None, None, None]

    def loss() -> Any:
        noise = torch.randn_like(x)
        return nn.functional.mse_loss(model(kept.sqrt() * x + (1 - kept).sqrt() * noise, times), noise)

    return training(torch, torch.optim.Adam(model.parameters(), lr=2e-4), loss)


def pixelcnn(torch: Torch) -> Step:
    """Four layers of masked 7 × 7 convolution, 32 channels on 28 × 28 pixels, 4 images of 16 grey levels."""
    nn: Any = torch.nn

    class Masked(nn.Conv2d):  # type: ignore[misc]
        def __init__(self, *sizes: int, sees_itself: bool) -> None:
            super().__init__(*sizes, padding=3, bias=False)
            mask = torch.ones_like(self.weight)
            mask[:, :, 3, 3 + sees_itself :] = 0
            mask[:, :, 4:] = 0
            self.register_buffer("mask", mask)

        def forward(self, x: Any) -> Any:
            self.weight.data *= self.mask
            return super().forward(x)

    layers: list[Any] = []
    for before, sees_itself in ((1, False), (32, True), (32, True), (32, True)):
        layers += [Masked(before, 32, 7, sees_itself=sees_itself), nn.BatchNorm2d(32), nn.ReLU(inplace=True)]
    model = nn.Sequential(*layers, nn.Conv2d(32, 16, 1))
    return classifying(torch, model, normal(torch, 4, 1, 28, 28), labels(torch, 16, 4, 28, 28))


def capsules(torch: Torch) -> Step:
    """9 × 9 convolutions, 288 capsules and three rounds of routing to 10, 8 images."""
    nn: Any = torch.nn
    functional = nn.functional

    def squash(x: Any) -> Any:
        size = (x**2).sum(-1, keepdim=True)
        return size * x / ((1 + size) * torch.sqrt(size + 1e-8))

    conv, primary = nn.Conv2d(1, 64, 9), nn.Conv2d(64, 64, 9, 2)
    weight = nn.Parameter(0.01 * normal(torch, 1, 288, 10, 16, 8))
    x, y = normal(torch, 8, 1, 28, 28), functional.one_hot(labels(torch, 10, 8), 10).float()

    def loss() -> Any:
        found = squash(primary(functional.relu(conv(x))).view(8, 8, -1).transpose(1, 2))
        votes = torch.matmul(weight, found[:, :, None, :, None]).squeeze(-1)
        agreement, still = torch.zeros(8, 288, 10, 1), votes.detach()
        for _ in range(2):
            out = squash((functional.softmax(agreement, dim=2) * still).sum(1, keepdim=True))
            agreement = agreement + (still * out).sum(-1, keepdim=True)
        out = squash((functional.softmax(agreement, dim=2) * votes).sum(1))
        size = torch.sqrt((out**2).sum(-1) + 1e-8)
        missing, wrong = functional.relu(0.9 - size) ** 2, functional.relu(size - 0.1) ** 2
        return (y * missing + 0.5 * (1 - y) * wrong).sum(1).mean()

    return training(torch, torch.optim.Adam([*parameters(conv, primary), weight], lr=1e-3), loss)


def style(torch: Torch) -> Step:
    """Style transfer: the pixels of an image of 96 × 96 are trained by the Gram matrices of three layers."""
    nn: Any = torch.nn
    layers = nn.ModuleList([nn.Conv2d(before, after, 3, padding=1) for before, after in ((3, 32), (32, 32), (32, 64))])
    layers.requires_grad_(False)

    def grams(x: Any) -> list[Any]:
        found = []
        for number, layer in enumerate(layers):
            x = nn.functional.relu(layer(x))
            flat = x.view(x.shape[1], -1)
            found.append(torch.mm(flat, flat.t()) / flat.numel())
            x = nn.functional.avg_pool2d(x, 2) if number == 1 else x
        return found

    image = normal(torch, 1, 3, 96, 96).requires_grad_(True)
    with torch.no_grad():
        goals = grams(0.5 * normal(torch, 1, 3, 96, 96, seed=2))

    def loss() -> Any:
        return sum(1e6 * nn.functional.mse_loss(gram, goal) for gram, goal in zip(grams(image), goals, strict=True))

    return training(torch, torch.optim.Adam([image], lr=0.02), loss)


def superresolution(torch: Torch) -> Step:
    """Convolutions of 5 × 5 and 3 × 3 with tanh, and pixels shuffled to three times the size, 8 images."""
    nn: Any = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 64, 5, 1, 2), nn.Tanh(), nn.Conv2d(64, 32, 3, 1, 1), nn.Tanh(), nn.Conv2d(32, 9, 3, 1, 1),
        nn.PixelShuffle(3),
    )  # fmt: skip
    x, y = normal(torch, 8, 1, 17, 17), normal(torch, 8, 1, 51, 51)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return training(torch, optimizer, lambda: nn.functional.mse_loss(model(x), y))


def contrastive(torch: Torch) -> Step:
    """32 pairs of images are told from all others by the cosine of their codes; SGD with Nesterov's momentum."""
    nn: Any = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32),
    )  # fmt: skip
    x, itself, partner = normal(torch, 64, 3, 32, 32), torch.eye(64, dtype=torch.bool), torch.arange(64) ^ 1

    def loss() -> Any:
        codes = nn.functional.normalize(model(x), dim=1)
        return nn.functional.cross_entropy((codes @ codes.t() / 0.5).masked_fill(itself, -1e9), partner)

    return training(torch, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True), loss)


def vit(torch: Torch) -> Step:
    """Two encoder layers of width 64 over patches of 4 × 4 pixels and a class token, 16 images."""
    nn: Any = torch.nn

    class Vit(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.patch, self.head = nn.Conv2d(3, 64, 4, 4), nn.Linear(64, 10)
            self.token, self.place = nn.Parameter(torch.zeros(1, 1, 64)), nn.Parameter(torch.zeros(1, 65, 64))
            layer = nn.TransformerEncoderLayer(64, 4, 256, 0.1, activation="gelu", batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x: Any) -> Any:
            patches = self.patch(x).flatten(2).transpose(1, 2)
            tokens = torch.cat([self.token.expand(len(x), -1, -1), patches], 1) + self.place
            return self.head(self.encoder(tokens)[:, 0])

    return classifying(torch, Vit(), normal(torch, 16, 3, 32, 32), labels(torch, 10, 16))


def mixer(torch: Torch) -> Step:
    """Two MLP-Mixer blocks of width 96 over 64 patches, 16 images."""
    nn: Any = torch.nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(96), nn.LayerNorm(96)
            self.tokens = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
            self.channels = nn.Sequential(nn.Linear(96, 256), nn.GELU(), nn.Linear(256, 96))

        def forward(self, x: Any) -> Any:
            x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norm2(x))

    patch, body, head = nn.Conv2d(3, 96, 4, 4), nn.Sequential(Block(), Block()), nn.Linear(96, 10)
    x, y = normal(torch, 16, 3, 32, 32), labels(torch, 10, 16)

    def loss() -> Any:
        return nn.functional.cross_entropy(head(body(patch(x).flatten(2).transpose(1, 2)).mean(1)), y)

    return training(torch, torch.optim.Adam(parameters(patch, body, head), lr=1e-3), loss)


def sharpness_aware(torch: Torch) -> Step:
    """SAM on a small convolutional net: two passes, the second where the gradient leads; 16 images."""
    nn: Any = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2048, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    x, y = normal(torch, 16, 3, 32, 32), labels(torch, 10, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    params = list(model.parameters())

    def loss() -> Any:
        return nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)

    def step() -> Any:
        first = loss()
        first.backward()
        with torch.no_grad():
            size = torch.norm(torch.stack([param.grad.norm(p=2) for param in params]), p=2)
            moves = [0.05 / (size + 1e-12) * param.grad for param in params]
            for param, move in zip(params, moves, strict=True):
                param.add_(move)
        optimizer.zero_grad()
        loss().backward()
        with torch.no_grad():
            for param, move in zip(params, moves, strict=True):
                param.sub_(move)
        optimizer.step()
        optimizer.zero_grad()
        return first

    return step


STEPS = (
    cnn, resnet, mobilenet, convnext, unet, dcgan, diffusion, pixelcnn, capsules, style, superresolution, contrastive,
    vit, mixer, sharpness_aware,
)  # fmt: skip
"""The steps of this file."""
