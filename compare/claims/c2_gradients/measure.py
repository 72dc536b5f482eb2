"""The sweep behind claim C2: every differentiable op, every sample, every choice of inputs that need one.

Each engine is checked against central differences in float64, to second order, and then against the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from compare import steps
from compare.records.gradients import Gradients
from compare.records.job import Job

if TYPE_CHECKING:
    from graphs.testing import Sample

ORDER = 2
"""Gradients, and gradients of gradients."""
TOLERANCE = 1e-12
"""Both engines run the same rules in float64, so they may differ by the order of additions and no more."""

Check = tuple[str, Callable[[], None]]


def measure(_job: Job) -> Gradients:
    """The gradients record: how many checks there were, how many passed, and what failed, by op."""
    with redirect_stderr(StringIO()):  # some ops print what they are given
        outcomes = {
            name: [_outcome(*check) for check in checks(name)] for name in steps.each("checked", differentiable())
        }
    failures = [outcome for found in outcomes.values() for outcome in found if outcome]
    total = sum(map(len, outcomes.values()))
    by_op = {name: {"checks": len(o), "passed": o.count(None)} for name, o in outcomes.items()}
    return Gradients("C2", total, total - len(failures), failures, by_op)


def differentiable() -> list[str]:
    """The names of all ops that have a gradient in some input."""
    import graphs.ops  # noqa: F401  (importing the library fills the registry)
    from graphs.op import registered

    return sorted(name for name, op in registered().items() if op.differentiable and op.family != "control")


def checks(op_name: str) -> Iterator[Check]:
    """The checks of one op, each with its name; a check raises where a gradient is wrong."""
    import dynamic
    import static
    from graphs.testing import check_grads, samples

    for sample in samples(op_name):
        if sample(*sample.arrays).dtype.kind != "f":
            continue  # astype to an int has a rule, and nothing to differentiate
        for inputs in sample.patterns():
            what = f"{sample} in {', '.join(f'input {i}' for i in inputs)}"
            differences = partial(check_grads, sample, sample.arrays, ORDER, argnums=inputs)
            yield f"{what}: tape against finite differences", partial(differences, engine=dynamic)
            yield f"{what}: static against finite differences", partial(differences, engine=static)
            yield f"{what}: static against tape", partial(check_engines, sample, inputs)


def check_engines(sample: Sample, inputs: tuple[int, ...]) -> None:
    """Raises AssertionError where the gradients of the two engines in these inputs differ."""
    import dynamic
    import static

    point = [sample.arrays[i] for i in inputs]
    loss = weighted(sample, inputs)
    _, taped = dynamic.value_and_grad(loss)(point)
    _, compiled = static.compile(static.value_and_grad(loss), point)(point)
    for i, ours, theirs in zip(inputs, compiled, taped, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"the gradient of input {i}")


def weighted(sample: Sample, inputs: tuple[int, ...]) -> Callable[[list[Any]], Any]:
    """The sample as a scalar function of some of its inputs, each element of the result weighted."""
    import graphs

    weights = weights_of(sample(*sample.arrays).shape)

    def loss(values: list[Any]) -> Any:
        arrays = list(sample.arrays)
        for i, value in zip(inputs, values, strict=True):
            arrays[i] = value
        return graphs.sum(graphs.multiply(sample(*arrays), weights))

    return loss


def weights_of(shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """A weight for each element."""
    return np.asarray(np.cos(np.arange(np.prod(shape))).reshape(shape), np.float64)


def _outcome(name: str, check: Callable[[], None]) -> str | None:
    """None if the check passes, else what went wrong, on one line."""
    try:
        check()
    except Exception as error:  # noqa: BLE001  (a crash is a failed check, not the end of the sweep)
        return f"{name}: {' '.join(str(error).split()) or type(error).__name__}"
    return None
