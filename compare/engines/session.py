"""A warm session in an engine, as a person has it who edits a model; a block that hangs is given up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from compare import workloads
from compare.engines import Engine, of_mode
from compare.engines.limit import LimitError, limit_seconds
from compare.errors import UnsupportedError

FIRST = "tiny_mlp"
"""The workload that is compiled first, so that no later one pays for loading a compiler."""
PATIENCE = 120.0
"""The limit in seconds for that first compilation."""


def session(mode: str) -> Engine:
    """Return the engine of a mode, started, after the mode has compiled a first workload."""
    engine = of_mode(mode)
    engine.start(0)
    case = engine.library.workload(workloads.source(FIRST)).case("small")
    with suppress(UnsupportedError), try_block(engine, PATIENCE):
        step = engine.build(mode, engine.loss(mode, case), 0)
        engine.wait(step(*engine.arrays((case.params, *case.examples[0]))))
    return engine


@contextmanager
def try_block(engine: Engine, seconds: float) -> Iterator[None]:
    """A context for a block that an engine may refuse, fail in, or not end in `seconds`.

    Raises UnsupportedError with the reason.
    """
    try:
        with limit_seconds(seconds):
            yield
    except LimitError:
        raise
    except Exception as error:
        said = engine.errors.reason(error)
        raise UnsupportedError(said if engine.errors.refuses(error) else f"failed: {said}") from error
