"""Two models that packages ship, against onnxruntime: magika (kinds of files) and silero-vad (speech, nested Ifs)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import dynamic
import static
from graphs.onnx import load

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

CLOSE = {"rtol": 0, "atol": 1e-5}
RNG = np.random.default_rng(0)
CHUNK = (RNG.standard_normal((1, 576)) * 0.1).astype(np.float32)
SILENCE = np.zeros((2, 1, 128), np.float32)


def file_of(package: str, path: str) -> Path:
    """A file of a package that is installed; its code is not run."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(spec.origin).parent / path


def by_onnxruntime(path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options).run(None, feeds)


def check(results, expected) -> None:
    results = results if isinstance(results, tuple) else (results,)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(np.asarray(result), wanted, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_magika_gives_onnxruntimes_probabilities_for_any_number_of_files(backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    path = file_of("magika", "models/standard_v3_3/model.onnx")
    model = load(path)
    compiled = static.compile(model, *model.inputs.values(), backend=backend)
    for count in (1, 3):
        files = RNG.integers(0, 257, (count, 2048)).astype(np.int32)  # bytes, and 256 where a file ends
        expected = by_onnxruntime(path, {"bytes": files})
        check(compiled(files), expected)
        if backend == "numpy":
            check(model(dynamic.Tensor(files)), expected)


@pytest.mark.parametrize("rate", [8000, 16000])
def test_silero_gives_onnxruntimes_probability_of_speech_over_a_stream(rate: int) -> None:
    """The rate decides by an If which of two networks runs; that of a graph is known when it is made."""
    path = file_of("silero_vad", "data/silero_vad.onnx")
    model = load(path)
    chunk = CHUNK[:, : 576 * rate // 16000]
    compiled = static.compile(model, chunk, SILENCE, rate)
    state = expected_state = SILENCE
    for turn in range(3):
        x = (chunk * (turn + 1)).astype(np.float32)
        expected = by_onnxruntime(path, {"input": x, "state": expected_state, "sr": np.array(rate)})
        check(model(dynamic.Tensor(x), dynamic.Tensor(state), rate), expected)
        results = compiled(x, state, rate)
        check(results, expected)
        state, expected_state = results[1], expected[1]


@pytest.mark.slow
def test_silero_without_an_if_decides_its_rate_in_the_graph() -> None:
    path = file_of("silero_vad", "data/silero_vad_op18_ifless.onnx")
    model = load(path)
    compiled = static.compile(model, *model.inputs.values())
    for rate in (8000, 16000):
        feeds = {"input": CHUNK, "sr": np.array(rate), "state": SILENCE}
        check(compiled(CHUNK, np.array(rate), SILENCE), by_onnxruntime(path, feeds))
