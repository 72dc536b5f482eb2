"""compile: a function and the specs of its arguments, to an executable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from static.executable import Executable
from static.passes import pipeline
from static.trace import trace_function


def compile(
    f: Callable[..., Any], *args: Any, passes: Sequence[pipeline.Pass] = pipeline.DEFAULT, arena: bool = True
) -> Executable:
    """Compile `f` for arguments of these specs.

    Each argument is a TensorSpec, an example array, or a nested container of them; any other leaf (a number, a
    string) is a static value that the graph is specialised to. A string in a spec's shape is a symbolic size.
    With `arena=False` every kernel allocates its result, as the dynamic engine does: the first rung of the ladder.
    Raises ControlFlowError where `f` asks for the value of something traced, and what its ops raise.
    """
    traced = trace_function(f, args)
    graph, steps = pipeline.run(traced.graph, passes)
    return Executable(traced, graph, steps, arena=arena)
