"""The example programs run and show what they say."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_torch_style_prints_what_pytorch_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("torch_style.py", capsys).splitlines() == [
        "tensor([ 2., -2.,  4.], grad_fn=<MulBackward0>)",
        "tensor([2., 2., 2.])",
        "tensor([-5., -4., -3.], grad_fn=<SubBackward0>)",
        "tensor([1., 1., 1.])",
        "tensor([1.0000, 1.5000, 2.0000], grad_fn=<DivBackward0>) tensor([0.5000, 0.5000, 0.5000])",
    ]


@pytest.mark.slow
def test_training_on_digits_is_the_same_in_both_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train_digits.py", capsys).count("accuracy 9") == 2


@pytest.mark.slow
def test_a_convnet_trains_the_same_in_both_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("convnet_digits.py", capsys).count("accuracy 9") == 2


@pytest.mark.slow
def test_own_function_has_one_graph_in_both_engines(capsys: pytest.CaptureFixture[str]) -> None:
    printed = run("own_function.py", capsys)
    assert "One graph, " in printed
    assert "not timed" not in printed


def test_no_example_is_left_out() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "convnet_digits.py",
        "torch_style.py",
        "train_digits.py",
        "own_function.py",
    }
