"""Models that packages ship, in onnxruntime and here: `python -m benchmarks.onnx_models`.

In each round every way runs the model once, in turn; a figure is the median over rounds of processor time on one
thread, divided by that of onnxruntime. Needs `graphduel[onnx-tests,native]`.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

import dynamic
import static
from compare.run.environment import pin
from graphs.onnx import load

Run = Callable[[], Any]


def magika() -> tuple[Path, dict[str, Any]]:
    """The kind of a file, from 2,048 of its bytes."""
    bytes_of_file = np.random.default_rng(0).integers(0, 257, (1, 2048)).astype(np.int32)
    return _file("magika", "models/standard_v3_3/model.onnx"), {"bytes": bytes_of_file}


def silero() -> tuple[Path, dict[str, Any]]:
    """Speech or none, in 36 ms of sound."""
    sound = np.random.default_rng(0).standard_normal((1, 576)).astype(np.float32) / 10
    return _file("silero_vad", "data/silero_vad_half.onnx"), {
        "input": sound,
        "state": np.zeros((2, 1, 128), np.float32),
    }


MODELS = {"magika": magika, "silero-vad": silero}


def _file(package: str, path: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise click.UsageError(f"{package} is not installed; pip install 'graphduel[onnx-tests]'")
    return Path(spec.origin).parent / path


def ways(path: Path, feeds: dict[str, Any]) -> dict[str, Run]:
    """What runs a model, by name."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    model = load(path)
    arrays = [feeds[name] for name in model.inputs]
    tensors = [dynamic.tensor(array) for array in arrays]
    plain, native = (static.compile(model, *arrays, backend=backend) for backend in ("numpy", "native"))
    return {
        "onnxruntime": lambda: session.run(None, feeds),
        "static, native": lambda: native(*arrays),
        "static": lambda: plain(*arrays),
        "dynamic": lambda: model(*tensors),
    }


def ratios(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    """The time of each way, divided by that of the first."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 2):
        for name, run in runs.items():
            begin = time.thread_time()
            run()
            seconds[name].append(time.thread_time() - begin)
    medians = [statistics.median(times[2:]) for times in seconds.values()]
    return {name: median / medians[0] for name, median in zip(runs, medians, strict=True)}


@click.command(help=__doc__)
@click.option("--rounds", default=30, show_default=True)
def main(rounds: int) -> None:
    """Print a line for each model."""
    pin()
    with threadpool_limits(1):
        for name, make in MODELS.items():
            row = ratios(ways(*make()), rounds)
            click.echo(f"{name:12}" + "".join(f"  {way} {ratio:.2f}" for way, ratio in row.items()))


if __name__ == "__main__":
    main()
