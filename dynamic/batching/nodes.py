"""Nodes of deferred ops, in levels, and the keys that decide which of them run together.

The result of a node is a run of elements of some kind. Nodes of one bundle and depth are a level; first the values and
nodes, then the signatures.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Any

from dynamic.batching.rules import RULES, Form, Roles, Runner, row_roles, runner, stacked_rule, view_offset
from dynamic.tensor import Tensor
from graphs.dims import Shape
from graphs.op import Attrs, Op
from graphs.spec import TensorSpec

NEVER = 1 << 62  # later than every reader


class ValueKind:
    """The spec of a deferred value. There is one object for each spec, so that kinds are compared by identity.

    Constants have kinds of their own, whose `shared` is the kind of computed values. Each parameter has its own kind,
    so that signatures distinguish parameters.
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
    """The result of one group as one tensor: the values of its nodes are runs of elements in row-major order."""

    __slots__ = ("size", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.size = tensor.size


class Level:
    """Ops of one bundle and one depth, where depth is the number of ops on the longest path to them.

    ran       whether the ops have run
    users, waiting, rank   for the schedule: the levels that read this one, how many it waits for, its priority
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
        """Mark the level as run, and drop its nodes and users, so that one result does not keep all of them alive."""
        self.ran = True
        self.nodes, self.users = [], []


class DeferredNode:
    """One deferred op, or a constant, whose block is set from the start.

    inputs         the runs of elements that it reads
    block, start   set when it has run: its elements are those of the block from `start` on
    line           the user's line, if the op can fail for some values
    read           the place of its first reader in the order of running: see `arrange`
    viewed         set if some value is a view of the node
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
    """A view of another run from an offset on, as reshaping or indexing gives; it needs no op.

    `owner` is the node that computes the elements; they have a block once it has run.
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
        """The block of the run."""
        return self.node.block

    @property
    def start(self) -> int:
        """The first element of the view in the block."""
        return self.node.start + self.offset


class ResultPart:
    """One result of a node with several; in its block it follows the same results of earlier nodes in the group."""

    __slots__ = ("index", "level", "owner", "size", "viewed")

    viewed: bool

    def __init__(self, owner: Several, index: int, size: int) -> None:
        self.owner, self.index, self.size = owner, index, size
        self.level = owner.level

    @property
    def block(self) -> GroupValues:
        """The block of this result for all nodes of the group."""
        return self.owner.blocks[self.index]

    @property
    def start(self) -> int:
        """The first element of the result in the block."""
        return self.owner.start * self.size


class Several(DeferredNode):
    """A node with several results, each in its own block; `start` is the node's number in its group."""

    __slots__ = ("blocks",)

    blocks: list[GroupValues]


Elements = DeferredNode | View | ResultPart


# Signatures -----------------------------------------------------------------------------------------------------------


_LIMIT = 4096


class How(Enum):
    """The ways to run a group of ops."""

    STACKED = "their inputs on a new first axis"
    ROWS = "the op as it is, on the rows of all its inputs together"
    JOINED = "no op: each result is its inputs, one after the other"
    SINGLE = "one by one"
    CELL = "one after the other the ops that each is made of, stacked"


class OpSignature:
    """An op on inputs of some kinds: all that does not depend on the values, computed once.

    out     the kind of the result
    view    the first element of the result in the first input, if it is a run of its elements: no op runs
    roles   for an op that runs on rows: which inputs have rows
    rule    for an op that runs stacked: its rule
    shapes  the shapes of the inputs
    risky   whether running it may fail, so that the user's line must be kept
    """

    __slots__ = ("attrs", "how", "op", "out", "risky", "roles", "rule", "runners", "shapes", "view")

    ops = 1

    def __init__(self, op: Op, kinds: Sequence[ValueKind], constant: Roles, attrs: Attrs) -> None:
        self.op, self.attrs = op, attrs
        self.out = kind_of(op.infer(*(k.spec for k in kinds), **attrs))
        self.shapes = shapes = [k.shape for k in kinds]
        self.view = view_offset(op, shapes[0], attrs) if kinds else None
        self.roles = row_roles(op, shapes, constant, attrs, self.out.shape) if kinds else None
        self.rule = stacked_rule(op, attrs)
        self.how = self._how(kinds)
        self.risky = op.fails == "raises" or self.how is How.SINGLE
        self.runners: dict[Roles, Runner] = {}

    def runner(self, stacked: Roles) -> Runner:
        """The runner of such ops as one; `stacked` says for each input whether it is stacked, or shared by all ops."""
        stacked_runner = self.runners.get(stacked)
        if stacked_runner is None:
            forms = [Form(shape, each) for shape, each in zip(self.shapes, stacked, strict=True)]
            stacked_runner = self.runners[stacked] = runner(self.op, self.attrs, forms, self.rule)
        return stacked_runner

    def _how(self, kinds: Sequence[ValueKind]) -> How:
        if RULES[self.op].joins and self.attrs["axis"] == 0 and len({k.dtype for k in kinds}) == 1:
            return How.JOINED
        if self.roles is not None:
            return How.ROWS
        return How.SINGLE if self.rule is None else How.STACKED


class Bundle:
    """The signatures whose ops may be in one group: they differ at most in the length of the first axis."""

    __slots__ = ("levels", "recording")

    def __init__(self, recording: bool) -> None:
        self.recording = recording
        self.levels: dict[int, Level] = {}  # what is pending, by depth


class Signature:
    """An op signature in one batch; its kinds distinguish parameters."""

    __slots__ = ("bundle", "call", "kinds", "out", "risky", "view")

    def __init__(self, call: OpSignature, kinds: tuple[ValueKind, ...], out: ValueKind, bundle: Bundle) -> None:
        self.call, self.kinds, self.out, self.bundle = call, kinds, out, bundle
        self.view, self.risky = call.view, call.risky  # for every op that is deferred


def bundle_key(call: OpSignature, kinds: Sequence[ValueKind], attrs: Hashable, recording: bool) -> Hashable:
    """A key that is equal for op signatures whose ops may be in one group."""
    if call.how is How.JOINED:
        return (call.how, call.out.shape[1:], call.out.dtype, recording)
    if call.how is How.ROWS and call.roles is not None:
        parts = [(k.shape[1:], k.dtype) if rows else k for k, rows in zip(kinds, call.roles, strict=True)]
        return (call.op, attrs, recording, *parts)
    return (call.op, attrs, recording, call.how, *kinds)


_kinds: dict[tuple[Shape, int], ValueKind] = {}
_calls: dict[Hashable, OpSignature] = {}


def kind_of(spec: TensorSpec) -> ValueKind:
    """The one kind of all computed values of a spec."""
    key = (spec.shape, spec.dtype.num)
    kind = _kinds.get(key)
    if kind is None:
        kind = _kinds[key] = ValueKind(spec)
    return kind


def call_of(op: Op, kinds: Sequence[ValueKind], attrs: Attrs, key: Hashable) -> OpSignature:
    """The cached op signature for inputs of these kinds. Raises the errors of `infer`."""
    shared = tuple([k.shared for k in kinds])
    constant = tuple([k.shared is not k for k in kinds])
    signature = _calls.get((op, shared, constant, key))
    if signature is None:
        signature = _calls[op, shared, constant, key] = OpSignature(op, shared, constant, attrs)
    return signature


def forget_rare() -> None:
    """Empty the caches of kinds and op signatures between two batches when they have grown large."""
    if len(_calls) > _LIMIT:
        _calls.clear()
        _kinds.clear()


def freeze(attrs: Attrs) -> Hashable:
    """Attributes as a hashable key. Equal numbers that differ, such as 0.0 and -0.0, have different keys."""
    key = tuple(attrs.values())
    if float not in map(type, key):
        try:
            hash(key)
        except TypeError:  # a slice
            return repr(attrs)
        return key
    return repr(attrs)
