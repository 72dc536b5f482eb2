"""A model in the place of a user's function: `graphduel graph model.onnx`, `graphduel compare model.onnx`."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import graphs as g
import static
from compare.cli.command import graphduel
from compare.errors import InputsError
from compare.subjects import origin


@pytest.fixture
def written(tmp_path):
    """A file with a small model."""
    path = tmp_path / "small.onnx"
    path.write_bytes(static.export(lambda x: g.tanh(x + 1), g.TensorSpec(("N", 3))))
    return path


def test_a_model_is_a_function_with_a_call_that_a_worker_finds(written) -> None:
    model, calls = origin.load_function(f"{written}:model", None)
    ((x,),) = calls
    assert (x.shape, x.dtype) == ((8, 3), np.float32)
    np.testing.assert_allclose(model(x), np.tanh(x + 1), rtol=1e-6)
    place = origin.origin_of(model)
    assert place is not None
    assert place.load() is model


def test_a_file_that_is_no_model_is_refused(tmp_path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(InputsError, match=r"broken.onnx: "):
        origin.load_function(f"{path}:model", None)


@pytest.mark.slow
def test_the_graph_of_a_model_names_its_nodes(written) -> None:
    answer = CliRunner().invoke(graphduel, ["graph", str(written)])
    assert answer.exit_code == 0, answer.output
    assert "# Tanh_" in answer.output
