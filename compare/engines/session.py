"""A session in a framework, as a person has it who edits a model: it is warm, and what hangs is given up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from compare import workloads
from compare.engines import Engine, of_arm
from compare.engines.limit import LimitError, within
from compare.errors import UnsupportedError

FIRST = "tiny_mlp"
"""The workload that is compiled first, so that no other pays for loading a compiler."""
PATIENCE = 120.0
"""Seconds for that."""


def session(arm: str) -> Engine:
    """The framework of an arm, started; that arm has compiled something in it."""
    framework = of_arm(arm)
    framework.start(0)
    case = framework.workload(workloads.source(FIRST)).case("small")
    with suppress(UnsupportedError), tried(framework, PATIENCE):
        step = framework.build(arm, framework.loss(arm, case), 0)
        framework.wait(step(*framework.arrays((case.params, *case.examples[0]))))
    return framework


@contextmanager
def tried(framework: Engine, seconds: float) -> Iterator[None]:
    """A block that a framework may refuse, fail in, or not end in so many seconds.

    Raises UnsupportedError, which says why.
    """
    try:
        with within(seconds):
            yield
    except LimitError:
        raise
    except Exception as error:
        said = framework.reason(error)
        raise UnsupportedError(said if framework.refuses(error) else f"failed: {said}") from error
