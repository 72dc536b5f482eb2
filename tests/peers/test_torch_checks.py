"""The checks of steps, of functions of PyTorch: the framework is seen from the inputs."""

import pytest

from compare.errors import InputsError
from compare.gate.checks import compiles_at_most, compiles_once, no_breaks, parity

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")


def loss(w, x):
    return (torch.tanh(x @ w) ** 2).mean()


def wrong(w, x):
    return loss(w, x) * (1.01 if torch.compiler.is_compiling() else 1.0)


def calls(*rows):
    return [(torch.full((3, 2), 0.5), torch.linspace(0, 1, 3 * n).reshape(n, 3)) for n in rows]


def test_a_function_of_pytorch_compiles_once_or_the_check_says_why():
    assert compiles_once(loss, calls(4, 4)).compiles == 1
    with pytest.raises(AssertionError, match=r"loss: compiled 2 times for 2 inputs, .*\n  1: .*\n  2: .*expected 4"):
        compiles_once(loss, calls(4, 5))
    with pytest.raises(InputsError, match=r"shapes: options of static\.jit, which compiles no PyTorch"):
        compiles_once(loss, calls(4), shapes="symbolic")


def test_parity_of_a_function_of_pytorch_compares_each_mode_with_eager():
    record = parity(loss, calls(4, 5), modes=("aot-eager", "compile"))
    assert {mode: row.status for mode, row in record.modes.items()} == dict.fromkeys(
        ("eager", "aot-eager", "compile"), "ok"
    )
    with pytest.raises(AssertionError, match=r"wrong: the modes do not agree:\n  aot-eager: disagree: "):
        parity(wrong, calls(4), modes=("aot-eager",))


def breaking(w, x):
    total = (x @ w).sum()
    if total.item() > 0:
        total = total * 2
    return total


def test_breaks_and_compilations_of_pytorch_are_counted_without_making_kernels():
    assert compiles_at_most(loss, calls(4, 5), 2).compiles == 2
    with pytest.raises(
        AssertionError, match=r"loss: compiled 2 times for 2 inputs, expected at most 1 time; the reason"
    ):
        compiles_at_most(loss, calls(4, 5), 1)
    assert no_breaks(loss, calls(4, 5)).compiles == 2
    with pytest.raises(AssertionError, match=r"breaking: 1 graph break:\n  .*test_torch_checks\.py:\d+"):
        no_breaks(breaking, calls(4))
