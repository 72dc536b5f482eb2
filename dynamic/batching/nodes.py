"""Nodes that wait to run, in levels. The result of a level is a run of elements, and a run has a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamic.tensor import Tensor
from graphs.spec import TensorSpec

NEVER = 1 << 62  # later than every reader


class ValueKind:
    """The spec of a deferred value. There is one object for each spec, so that kinds are compared by identity.

    Constants have kinds apart, whose `shared` is that of computed values, and each parameter has one of its own:
    which parameter it is counts in a signature.
    """

    __slots__ = ("dtype", "parameter", "row", "shape", "shared", "size", "spec")

    shape: tuple[int, ...]
    size: int

    def __init__(self, spec: TensorSpec, shared: ValueKind | None = None, parameter: bool = False) -> None:
        self.spec, self.dtype = spec, spec.dtype
        self.shape, self.size = spec.shape, spec.size  # type: ignore[assignment]  # numbers: these values exist
        self.shared = shared or self
        self.parameter = parameter
        self.row: ValueKind | None = None  # the kind of value[i], once somebody asked


class GroupValues:
    """What one group computed, as one tensor: the values of its nodes are runs of elements in row-major order."""

    __slots__ = ("size", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.size = tensor.size


class Level:
    """Ops of one bundle and one depth: the number of ops on the longest path to them.

    ran       whether their results are there
    users, waiting, rank   for the schedule: the levels that read them, how many levels they wait for, how urgent it is
    """

    __slots__ = ("batch", "bundle", "depth", "nodes", "ran", "rank", "users", "waiting")

    def __init__(self, batch: Any, bundle: Any, depth: int) -> None:
        self.batch, self.depth = batch, depth
        self.bundle = bundle  # None for constants
        self.nodes: list[DeferredNode] = []
        self.ran = bundle is None
        self.users: list[Level] = []
        self.waiting = self.rank = 0

    def finish(self) -> None:
        """Its ops have run: drop all that led to them, or one result would hold all of it."""
        self.ran = True
        self.nodes, self.users = [], []


class DeferredNode:
    """One deferred op, or a constant, whose block is there from the start.

    inputs         what it reads
    block, start   once it has run: its elements are those of the block from `start` on
    line           the user's, where the values alone can make it fail
    read           the group that reads it first: see `layout`
    viewed         set where some value is a view of it
    """

    __slots__ = ("block", "inputs", "level", "line", "read", "signature", "start", "viewed")

    block: GroupValues
    start: int
    line: str
    viewed: bool

    def __init__(self, level: Level, signature: Any, inputs: Sequence[Elements]) -> None:
        self.level = level
        self.signature = signature  # None for a constant
        self.inputs = inputs
        self.read = NEVER


class View:
    """Some elements of another run, from an offset on: what reshaping or indexing gives, for which no op need run.

    `owner` is the node that computes them; they are somewhere once that has run.
    """

    __slots__ = ("level", "node", "offset", "owner")

    node: DeferredNode | ResultPart
    owner: DeferredNode
    offset: int

    def __init__(self, run: Elements, offset: int) -> None:
        node = run.node if isinstance(run, View) else run
        self.node = node
        self.owner = node.owner if isinstance(node, ResultPart) else node
        self.offset = run.offset + offset if isinstance(run, View) else offset
        self.level = node.level
        node.viewed = True

    @property
    def block(self) -> GroupValues:
        """That of the run."""
        return self.node.block

    @property
    def start(self) -> int:
        """Where it begins in the block."""
        return self.node.start + self.offset


class ResultPart:
    """One of the results of a node that has several; its elements come after those of the nodes before."""

    __slots__ = ("index", "level", "owner", "size", "viewed")

    viewed: bool

    def __init__(self, owner: Several, index: int, size: int) -> None:
        self.owner, self.index, self.size = owner, index, size
        self.level = owner.level

    @property
    def block(self) -> GroupValues:
        """That of all results of this number."""
        return self.owner.blocks[self.index]

    @property
    def start(self) -> int:
        """Where it begins in the block."""
        return self.owner.start * self.size


class Several(DeferredNode):
    """A node with several results, in a block each; `start` is its number among the nodes of its group."""

    __slots__ = ("blocks",)

    blocks: list[GroupValues]


Elements = DeferredNode | View | ResultPart
