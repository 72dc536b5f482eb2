"""Eight steps of PyTorch for `benchmarks.by_hand`, and two more, of which Python runs a part, for `benchmarks.parts`.

Six take 40 to 400 µs: what is added to a call shows in them first. The other two are large enough for several threads.

`python benchmarks/short_steps.py STEP THREADS MODE...` times modes of a step by hand, in this process, and imports
nothing but PyTorch: it prints seconds of a call of each mode as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
labels = torch.randint(0, 10, (256,))
mlp = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
norm = nn.LayerNorm(64)
gate = nn.Linear(64, 128)
heads = nn.Linear(32, 96)
cell = nn.GRUCell(16, 32)
wide = nn.Sequential(
    *[nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(4)]
)


def cross_entropy(logits: Any) -> Any:
    """256 rows of 10 classes."""
    return functional.cross_entropy(logits, labels)


def penalty(w: Any) -> Any:
    """Five elementwise ops on 4,096 numbers."""
    return (torch.tanh(w) * torch.sigmoid(w) + 0.1 * w * w).mean()


def perceptron(x: Any) -> Any:
    """Two layers and cross entropy, 64 examples."""
    return functional.cross_entropy(mlp(x), labels[: x.shape[0]])


def gated(x: Any) -> Any:
    """A normalisation and a gated layer, 32 rows."""
    value, weight = gate(norm(x)).chunk(2, dim=-1)
    return (value * functional.gelu(weight)).pow(2).mean()


def attention(x: Any) -> Any:
    """Four heads that look back over 16 places, 4 examples."""
    queries, keys, values = heads(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
    return functional.scaled_dot_product_attention(queries, keys, values, is_causal=True).pow(2).mean()


def recurrent(x: Any) -> Any:
    """Two steps of a GRU of 32, 16 examples."""
    return cell(x[1], cell(x[0])).pow(2).mean()


def chain(v: Any) -> Any:
    """Thirty-six elementwise ops on 100,000 numbers, whose arrays the C library gives and takes back."""
    for _ in range(4):
        v = torch.tanh(v * 0.7 + 0.1) * torch.exp(-(v * v)) + v * 0.5
    return (v * v).mean()


def blocks(x: Any) -> Any:
    """Four blocks of a normalisation and two layers, 256 rows."""
    return wide(x).pow(2).mean()


cross_entropy_calls = [(torch.randn(256, 10, requires_grad=True),)]
penalty_calls = [(torch.randn(64, 64, requires_grad=True),)]
perceptron_calls = [(torch.randn(64, 32),)]
gated_calls = [(torch.randn(32, 64),)]
attention_calls = [(torch.randn(4, 16, 32),)]
recurrent_calls = [(torch.randn(2, 16, 16),)]
chain_calls = [(torch.randn(100_000, requires_grad=True),)]
blocks_calls = [(torch.randn(256, 64),)]


# Steps of which Python runs a part, for `benchmarks.parts`


def branching(x: Any) -> Any:
    """Two layers, and between them a number that Python reads."""
    hidden = mlp[0](x)
    if hidden.sum().item() > -1e9:
        hidden = hidden.relu()
    return functional.cross_entropy(mlp[2](hidden), labels[: x.shape[0]])


branching_calls = perceptron_calls
trained = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(trained.parameters(), lr=0.01)


def training(x: Any) -> None:
    """A whole training step of two layers."""
    optimizer.zero_grad()
    functional.cross_entropy(trained(x), labels[: x.shape[0]]).backward()
    optimizer.step()


training_calls = perceptron_calls


# By hand --------------------------------------------------------------------------------------------------------------

BLOCK = 0.05
"""Seconds of a block: a loop of hundreds of calls, as a program has it. In one of 60 calls on a busy machine a compiled
call takes a tenth more, since what ran before it has the caches."""
ROUNDS = 15


def timed(name: str, threads: int, modes: list[str]) -> list[float]:
    """Seconds of a call of each mode: medians of blocks, on one thread of the processor, on several by the wall."""
    if hasattr(os, "sched_setaffinity"):  # to a core for each, as the command keeps its processes
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    function, (call,) = globals()[name], globals()[f"{name}_calls"]
    modules = [globals()[used] for used in function.__code__.co_names if isinstance(globals().get(used), nn.Module)]
    reached = [each for module in modules for each in module.parameters()]
    leaves = [*reached, *(tensor for tensor in call if tensor.requires_grad)]

    def trained(loss: Callable[..., Any]) -> Callable[[], None]:
        def step() -> None:
            for leaf in leaves:
                leaf.grad = None
            loss(*call).backward()

        return step

    calls = [trained(function if mode == "eager" else torch.compile(function)) for mode in modes]
    for _ in range(50):
        for step in calls:
            step()
    clock = time.process_time_ns if threads == 1 else time.perf_counter_ns
    counts = [max(1, round(BLOCK / block_seconds(step, 20, clock))) for step in calls]
    rounds = [
        [block_seconds(step, count, clock) for step, count in zip(calls, counts, strict=True)] for _ in range(ROUNDS)
    ]
    return [median(column) for column in zip(*rounds, strict=True)]


def block_seconds(step: Callable[[], None], count: int, clock: Callable[[], int] = time.process_time_ns) -> float:
    """Seconds of a call, in a block of so many."""
    start = clock()
    for _ in range(count):
        step()
    return (clock() - start) / count / 1e9


if __name__ == "__main__":
    print(json.dumps(timed(sys.argv[1], int(sys.argv[2]), sys.argv[3:])))  # noqa: T201  (its answer)
