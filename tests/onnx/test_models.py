"""Models that packages ship: those of onnx by the outputs beside them, magika and silero-vad against onnxruntime."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import dynamic
import static
from graphs.onnx import load
from tests.helpers.together import check_each
from tests.onnx import shipped

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
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


@pytest.mark.slow
def test_models_that_onnx_ships_give_the_outputs_beside_them_after_conversion() -> None:
    """In every engine; what is refused is refused by name."""
    rows: list[shipped.Row] = []
    check_each(shipped.small(), lambda model: rows.append(shipped.row_of(model)), lambda model: model.name)
    refusals = {row.name: row.results for row in rows if not row.passes}
    reasons = [text for results in refusals.values() for text in results.values()]
    assert all(re.match(r"StringNormalizer|ai\.onnx\.preview\.training\.Gradient", text) for text in reasons), reasons
    assert len(rows) - len(refusals) >= 132, refusals
    assert sum(row.is_converted for row in rows) >= 100


@pytest.mark.slow
def test_the_networks_that_onnx_ships_give_the_outputs_beside_them() -> None:
    """In one engine; `python -m tests.onnx.shipped` has them in each."""
    rows = [shipped.row_of(model, shipped.ENGINES[-1:]) for model in shipped.light()]
    assert [row.name for row in rows if not (row.passes and row.is_converted)] == []
    assert len(rows) == 9


def check(results, expected) -> None:
    results = results if isinstance(results, tuple) else (results,)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(np.asarray(result), wanted, **CLOSE, equal_nan=True)


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
            check(model(dynamic.tensor(files)), expected)


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
        check(model(dynamic.tensor(x), dynamic.tensor(state), rate), expected)
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
