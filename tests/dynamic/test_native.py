"""The compiled tape: which tape runs, its gradients to the bit, threads, watchers, operands that others hold."""

from __future__ import annotations

import functools
import itertools
import json
import operator
import os
import platform
import subprocess
import sys
import threading
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from compare.records.job import Job
from compare.run import processes
from compare.run.environment import environment
from dynamic import tapes
from dynamic.pool import _allocator
from graphs import dispatch, op
from graphs.ops.gamma import no_gradient_rule
from graphs.testing.samples import samples
from tests.helpers.both_tapes import compiled_only, in_python, loops, pullbacks
from tests.helpers.growth import failing
from tests.helpers.native_model import W, X, digest, loss, model, raises, watched
from tests.helpers.random_graphs import random_program
from tests.helpers.recorded import NO_SAMPLES, elementwise, operand
from tests.helpers.together import together

pytestmark = pytest.mark.usefixtures("nothing_unusual")

# Which tape runs --------------------------------------------------------------------------------------------------


def test_the_variable_switches_the_compiled_loops_off() -> None:
    assert in_python("-c", "from dynamic import tapes; print(tapes.is_compiled())") == "False\n"


def test_an_environment_tells_which_tape_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment().tape == ("compiled" if tapes.is_compiled() else "python")
    monkeypatch.setattr(tapes, "is_compiled", lambda: False)
    assert environment().tape == "python"


@pytest.mark.slow
def test_a_worker_has_the_tape_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes.ask(Job("environment"), 60).environment.tape == environment().tape
    monkeypatch.setenv("GRAPHDUEL_TAPE", "python")
    assert processes.ask(Job("environment"), 60).environment.tape == "python"


def test_the_doctor_tells_of_the_tape_and_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from compare.cli import checks

    told = {}
    for tape, variable in (("compiled", ""), ("python", ""), ("python", "python")):
        monkeypatch.setattr(checks, "_worker", lambda tape=tape: (checks.FINE, {"tape": tape}))
        monkeypatch.setattr(tapes, "is_compiled", lambda tape=tape: tape == "compiled")
        monkeypatch.setenv("GRAPHDUEL_TAPE", variable)
        told[tape, variable] = checks.examine()[1][0]
    assert told["compiled", ""] == ("tape", "its loops are compiled")
    assert "in Python: the compiled tape is missing: install " in told["python", ""][1]
    assert "in Python: GRAPHDUEL_TAPE says so; unset it" in told["python", "python"][1]


# Program ----------------------------------------------------------------------------------------------------------


def gradients() -> dict[str, str]:
    """A digest of the gradients, to the bit, of random programs, of every sample of every op, and of a model."""
    found = {}
    for seed in range(80):
        one = random_program(seed)
        value, gradient = dynamic.value_and_grad(one)(list(one.inputs))
        found[f"random program {seed}"] = digest([value, *gradient])
    for name, one in sorted(op.registered_ops().items()):
        for number, sample in enumerate(samples(name) if one.family not in NO_SAMPLES else ()):
            inputs = [operand(a, True) for a in sample.args]
            with np.errstate(all="ignore"):
                try:
                    result = sample.op(*inputs, **sample.attrs)
                    for _ in range(2):  # chains are known the second time
                        if isinstance(result, dynamic.Tensor) and result.requires_grad:
                            seeds = np.linspace(-1, 1, result.size).reshape(result.shape).astype(result.dtype)
                            result.backward(dynamic.tensor(seeds), retain_graph=True)
                except g.GraphError as error:
                    found[f"{name} {number}"] = str(error)
                    continue
            grads = [i.grad._data for i in inputs if isinstance(i, dynamic.Tensor) and i.grad is not None]
            found[f"{name} {number}"] = digest(grads)
    for dtype in (np.float16, np.float32, np.float64):
        params, x, y = model(dtype)
        for number in range(3):
            value, gradient = dynamic.value_and_grad(loss)(params, x, y)
            found[f"model {np.dtype(dtype)} {number}"] = digest([value, *gradient.values()])
            params = {name: params[name] - dtype(0.1) * gradient[name] for name in params}
    return found


@compiled_only
def test_programs_and_chains_give_the_gradients_of_python_to_the_bit() -> None:
    ours = gradients()
    theirs = json.loads(
        in_python("-c", "import json; from tests.dynamic.test_native import *; print(json.dumps(gradients()))")
    )
    assert {name for name in ours | theirs if ours.get(name) != theirs.get(name)} == set()
    assert len(ours) > 300


@compiled_only
def test_most_pullbacks_are_programs() -> None:
    """Or the test above would compare Python with itself."""
    x = dynamic.tensor(np.array([0.25, 0.5]), requires_grad=True)
    for one in elementwise():
        if one.rules and one.prepare is None and not _is_piecewise(one):
            args = (x,) * (one.arity or 1)
            with np.errstate(all="ignore"):
                one(*args).sum().backward()
            made = pullbacks.pullback(one, (1 << len(args)) - 1, len(args), None)
            assert type(made.apply) is loops.Program, one


def _is_piecewise(one: op.Op) -> bool:
    """Whether some input has no rule, or one that refuses."""
    return any(rule is None or rule.apply is no_gradient_rule for rule in one.rules)


# Quotients by powers of two ------------------------------------------------------------------------------------------

_EDGES = [0.0, -0.0, 1.0, -3.5, 1e-45, -1e-40, 1.5e-38, 3.4e38, np.inf, -np.inf, np.nan, 0.1]
_DIVISORS = [1, 2, 4.0, 1024, 2.0**60, 2.0**120, 3, 0.5, 2.0**-3, -2.0, 1.5, 2**-140, np.inf, np.nan, 1e300]


@together(("dtype", "divisor"), itertools.product([np.float16, np.float32, np.float64, np.dtype(">f4")], _DIVISORS))
def test_quotients_have_the_bits_of_numpys(divisor: float, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = np.resize(np.array(_EDGES, dtype), 5000)
        y = np.array(divisor, dtype)
        tensor, leaf = dynamic.tensor(y), dynamic.tensor(x, requires_grad=True)
        assert (leaf / tensor).detach().numpy().tobytes() == np.divide(x, y).tobytes()
        is_half = dtype is np.float16  # which PyTorch divides in float32 by a number
        by_number = np.divide(x.astype(np.float32), divisor).astype(dtype) if is_half else np.divide(x, divisor)
        assert (leaf / divisor).detach().numpy().tobytes() == by_number.tobytes()
        with dynamic.pool() if _allocator else ExitStack():
            (leaf / tensor).sum().backward()
        assert leaf.grad is not None
        assert leaf.grad.numpy().tobytes() == np.divide(np.ones_like(x), y).tobytes()


# Threads ----------------------------------------------------------------------------------------------------------


def test_a_thread_that_records_nothing_stops_no_other() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    told: dict[str, list[bool]] = {"idle": [], "recording": []}
    meeting = threading.Barrier(2, timeout=30)

    def look(name: str) -> None:
        for _ in range(20):
            meeting.wait()
            told[name] += [
                (x * 2.0).requires_grad,
                g.sin(x).requires_grad,
                x.sum().requires_grad,
                (x @ W).requires_grad,
            ]

    def idle() -> None:
        with dynamic.no_grad():
            look("idle")
            with dynamic.enable_grad():
                told["again"] = [(x * 2.0).requires_grad]

    other = threading.Thread(target=idle)
    other.start()
    look("recording")
    other.join()
    assert told == {"idle": [False] * 80, "recording": [True] * 80, "again": [True]}


def test_a_thread_begins_to_record_whatever_the_one_that_started_it_does() -> None:
    x, told = dynamic.tensor(X, requires_grad=True), []
    with dynamic.no_grad():
        other = threading.Thread(target=lambda: told.append((x * x).requires_grad))
        other.start()
        other.join()
        assert not (x * x).requires_grad
    assert told == [True]


# Watchers ---------------------------------------------------------------------------------------------------------


@compiled_only
def test_watchers_are_told_of_every_array_and_may_refuse_it() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    (g.sin(x) * x).sum().backward()
    seen: list[Any] = []
    with watched(seen.append):
        y = g.sin(x) * x
        assert [one.tolist() for one in seen] == [np.sin(X).tolist(), (np.sin(X) * X).tolist()]
        assert seen[-1] is y._data
        y.backward(np.ones_like(X))
    assert len(seen) == 2 + 2 + 2 + 1  # of multiply, of sin, and the sum of what arrived at x
    assert seen[-1].tolist() == (np.sin(X) + np.cos(X) * X).tolist()
    with watched(raises):
        failing(lambda: x * x, ZeroDivisionError)
    assert (x * x).requires_grad


# Operands that others still hold ----------------------------------------------------------------------------------


def _large(value: float) -> Any:
    return dynamic.tensor(np.zeros(100_000)) + value


@pytest.mark.parametrize("call", ["star", "starmap", "partial"])
def test_a_pool_overwrites_no_operand_that_somebody_holds(call: str) -> None:
    """A tuple lends what it holds to a call without a reference of its own."""
    with dynamic.pool():
        pair = (_large(2.0), _large(3.0))
        times = {
            "star": lambda: operator.add(*pair),
            "starmap": lambda: next(itertools.starmap(operator.add, [pair])),
            "partial": functools.partial(operator.add, _large(2.0), _large(3.0)),
        }[call]
        assert [times()[0].item() for _ in range(3)] == [5.0, 5.0, 5.0]
        assert [one[0].item() for one in pair] == [2.0, 3.0]


@pytest.mark.parametrize("retain", [1, np.True_])
def test_what_is_true_retains_a_graph(retain: Any) -> None:
    x = dynamic.tensor(X, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=retain)
    y.backward(retain_graph=0)
    assert x.grad.numpy().tolist() == (4 * X).tolist()


def test_a_hook_may_begin_to_observe() -> None:
    x, seen = dynamic.tensor(X, requires_grad=True), []
    h = g.cos(x)
    with ExitStack() as stack:
        h.register_hook(
            lambda _: stack.enter_context(dispatch.observe_kernels(lambda one, *_: seen.append(one.name))) and None
        )
        h.sum().backward()
    assert "sin" in seen


@compiled_only
@pytest.mark.parametrize(("size", "learned"), [(8, True), (2000, False)])
def test_a_large_constant_of_a_rule_is_not_held_for_good(size: int, learned: bool) -> None:
    """The gradient of a scatter in what it writes over makes zeros, which a program would keep."""
    x, at = dynamic.tensor(np.ones(size + 1), requires_grad=True), dynamic.tensor(np.arange(size))
    for _ in range(3):
        y = g.scatter(x, at, np.zeros(size))
        pullback = y.grad_fn.pullback
        g.sum(y).backward()
    found = next(run for told, run in pullback.apply.known if told[0] == (size + 1,))
    assert (type(found) is loops.Program) is learned
    assert x.grad.tolist() == [0.0] * size + [3.0]


# Pages ------------------------------------------------------------------------------------------------------------

_FAULTS = """
import resource, sys
import numpy
if sys.argv[1]:
    import compare.own.measure, dynamic  # all that a worker imports
if sys.argv[1] == "run":
    dynamic.tensor([1.0]) * 2
def step():
    for array in [numpy.ones(1 << 20, numpy.uint8) for _ in range(16)]:
        array += 1
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    _allocator is None or platform.libc_ver()[0] != "glibc", reason="glibc's thresholds, by the compiled part"
)
def test_a_step_finds_the_pages_that_the_one_before_has_freed():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}

    def faults(tape: str, **variables: str) -> int:
        command = [sys.executable, "-c", _FAULTS, tape]
        return int(subprocess.run(command, env=kept | variables, capture_output=True, check=True).stdout)

    assert faults("run") < 100 < faults("")
    assert faults("imported") > 100  # a process that computes otherwise is left as it is
    assert faults("run", MALLOC_TRIM_THRESHOLD_="131072") > 100  # who has set it has the last word
