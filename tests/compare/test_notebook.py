"""The cell magic, in a shell that has what IPython's has, and in IPython itself where it is installed."""

from types import SimpleNamespace

import numpy as np
import pytest

import compare
import graphs as g
from compare import advice
from compare.notebook import magic
from tests.helpers.prices import costs

CELL = """
import graphs as g

def helper(x):
    return g.tanh(x)

def loss(w, x):
    return g.mean(helper(x @ w) ** 2)
"""
CALLS = [(np.ones((3, 2), np.float32), np.ones((4, 3), np.float32))]


class Shell:
    """A notebook's shell, as far as an extension uses it."""

    def __init__(self):
        self.user_ns = {"inputs": CALLS}
        self.magics = {}

    def register_magic_function(self, function, kind, name):
        assert kind == "cell"
        self.magics[name] = function

    def run_cell(self, cell):
        try:
            exec(cell, self.user_ns)
        except Exception:  # noqa: BLE001  (as a shell does)
            return SimpleNamespace(success=False)
        return SimpleNamespace(success=True)


@pytest.fixture
def shell():
    found = Shell()
    compare.load_ipython_extension(found)
    return found


def test_the_last_function_of_a_cell_is_compared(shell):
    result = shell.magics["graphduel"]("--seconds 0.02 --modes dynamic,static-symbolic", CELL)
    assert result.name == "loss"
    assert result.modes == ("dynamic", "static-symbolic")
    assert "loss" in result._repr_html_()
    assert shell.user_ns["loss"](*CALLS[0]) == pytest.approx(np.tanh(3.0) ** 2)


@pytest.mark.slow
def test_inputs_are_an_expression_of_the_notebook(shell):
    shell.user_ns["w"] = np.ones((3, 5), np.float32)
    line = "'[(w, inputs[0][1])]' --no-gradient --seconds 0.02"
    result = shell.magics["graphduel"](line, CELL)
    assert "value over 1 input" in str(result)


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("", "x = 1", "the cell defines no function; write def loss"),
        ("", "def f(:", "line 1 of the cell is no Python"),
        ("nothing", CELL, "name 'nothing' is not defined; give a list of calls"),
        ("--nope", CELL, "unrecognized arguments: --nope; usage: %%graphduel"),
        ("", "def f(w, x):\n    print(w)\n    return w.sum()", "EffectsError"),
        ("", "def f(w, x):\n    raise SystemExit(0)", "FunctionError: f: <string>:2: sys.exit(0) ends the process"),
        (
            "",
            "def f(w, x):\n    __import__('os')._exit(0)",
            "FunctionError: f: <string>:2: os._exit(0) ends the process",
        ),
    ],
)
def test_a_refusal_is_one_line_and_no_traceback(shell, capsys, line, cell, said):
    assert shell.magics["graphduel"](line, cell) is None
    assert said in capsys.readouterr().err


def test_a_cell_that_fails_is_not_compared(shell):
    assert shell.magics["graphduel"]("", "def f(w, x):\n    return w\n1 / 0") is None


def test_the_magic_in_ipython_itself():
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell()
    shell.user_ns["inputs"] = CALLS
    compare.load_ipython_extension(shell)
    result = shell.run_cell_magic("graphduel", "--seconds 0.02", CELL)
    assert result.name == "loss"
    assert magic(shell) is not None


def test_advice_shows_itself_as_html():
    found = advice.advise(lambda w, x: g.mean((x @ w) ** 2), CALLS, costs=costs())
    assert found._repr_html_().startswith("<p><strong>")
    assert "<li>" in found._repr_html_()
