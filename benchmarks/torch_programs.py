"""Training programs of PyTorch, by their import line: `python -m benchmarks.torch_programs` runs each in both.

A program is written once, over a module that is `torch` or `dynamic`. In each round both take one step, in turn; a
ratio is the median over rounds of processor time, on one thread. Both start from random weights of their own.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

import dynamic
from compare.run.environment import pin

Torch = Any
Step = Callable[[], Any]
WARM = 3
"""Steps before the first round."""


def cnn(torch: Torch) -> Step:
    """Two layers of 5 × 5 convolution on 28 × 28 pixels, with pooling, 50 images."""
    nn: Any = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip
    return _classifying(torch, model, _normal(torch, 50, 1, 28, 28), _labels(torch, 10, 50))


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
    return _classifying(torch, model, _normal(torch, 16, 3, 32, 32), _labels(torch, 10, 16))


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
    drawer = torch.optim.Adam([*start.parameters(), *drawing.parameters()], **settings)
    critic = torch.optim.Adam(judge.parameters(), **settings)
    loss, real, noise = nn.BCELoss(), _normal(torch, 16, 1, 32, 32), _normal(torch, 16, 100)
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


def lstm(torch: Torch) -> Step:
    """A language model of characters: an LSTM of 128 over 30 steps, 20 texts."""
    nn: Any = torch.nn

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(100, 64), nn.LSTM(64, 128, batch_first=True)
            self.out = nn.Linear(128, 100)

        def forward(self, words: Any) -> Any:
            return self.out(self.lstm(self.embedding(words))[0]).reshape(-1, 100)

    return _classifying(torch, Model(), _labels(torch, 100, 20, 30), _labels(torch, 100, 600))


def gru(torch: Torch) -> Step:
    """A GRU of two layers over the 28 rows of 50 images."""
    nn: Any = torch.nn

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.out = nn.GRU(28, 64, 2, batch_first=True), nn.Linear(64, 10)

        def forward(self, rows: Any) -> Any:
            return self.out(self.gru(rows)[0][:, -1])

    return _classifying(torch, Model(), _normal(torch, 50, 28, 28), _labels(torch, 10, 50))


def _classifying(torch: Torch, model: Any, inputs: Any, labels: Any) -> Step:
    optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-3), torch.nn.CrossEntropyLoss()

    def step() -> Any:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _normal(torch: Torch, *shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape, np.float32))


def _labels(torch: Torch, count: int, *shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(1).integers(0, count, shape))


PROGRAMS = {f.__name__: f for f in (cnn, resnet, dcgan, lstm, gru)}


def measured(steps: tuple[Step, Step], rounds: int) -> list[tuple[float, float]]:
    """Seconds of the process for a step of each, round by round."""
    for step in steps * WARM:
        step()
    return [(_seconds(steps[0]), _seconds(steps[1])) for _ in range(rounds)]


def _seconds(step: Step) -> float:
    start = time.process_time()
    step()
    return time.process_time() - start


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=15, show_default=True, help="Steps of each program.")
@click.option("--only", type=click.Choice(list(PROGRAMS)), multiple=True, help="These programs; all by default.")
def main(rounds: int, only: tuple[str, ...]) -> None:
    """Run the programs in PyTorch and in `dynamic`, and print the ratios."""
    torch: Torch = importlib.import_module("torch")
    pin()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for name in only or PROGRAMS:
            pairs = measured((PROGRAMS[name](torch), PROGRAMS[name](dynamic)), rounds)
            theirs, ours = (statistics.median(seconds) * 1e3 for seconds in zip(*pairs, strict=True))
            ratio = statistics.median(own / other for other, own in pairs)
            click.echo(f"{name:8} PyTorch {theirs:8.2f} ms   dynamic {ours:8.2f} ms   {ratio:.2f} x")


if __name__ == "__main__":
    main()
