"""What is looked at in a function of the user's without a clock: shape policies, rewrites that help, and its graphs."""

from __future__ import annotations

from msgspec import Struct

from compare.records.record import Arm, OfCell
from graphs.drawing import Diagram


class PolicyCompile(Struct):
    """One compilation: at which call of the inputs, the first being 1, and why."""

    call: int
    reason: str


class PolicyCount(Arm):
    """What `static.jit` with these `options` compiles over the inputs.

    `padding` are the elements computed for each element asked for: 1 where nothing is padded.
    """

    options: str
    compiles: list[PolicyCompile]
    padding: float = 1.0


class ShapePolicies(OfCell, tag="shape policies"):
    """The shape policies by name, over the calls that differ in shape, structure or static values: `shapes` of them.

    `left_out` are further such calls, at which nobody looked.
    """

    shapes: int
    left_out: int
    policies: dict[str, PolicyCount]


class RewriteHint(Struct):
    """What of a function keeps a fixed graph from helping: the count for each line of the user's, and the remedy."""

    what: str
    lines: dict[str, int]
    remedy: str


class RewriteHints(OfCell, tag="hints"):
    """The hints for a function, and the text of each line that can be read."""

    hints: list[RewriteHint]
    code: dict[str, str]


class EngineGraphs(OfCell, tag="engine graphs"):
    """The graphs of a step by engine, as they are drawn: folded where they are large."""

    graphs: dict[str, Diagram]
    nodes: dict[str, int]
