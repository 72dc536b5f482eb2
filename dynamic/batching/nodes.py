"""Nodes that wait to run, in levels, and which of them run together.

The result of a level is a run of elements, and a run has a kind. Nodes of one signature are one group.
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


# Signatures -----------------------------------------------------------------------------------------------------------


_LIMIT = 4096


class How(Enum):
    """How a group of ops runs."""

    STACKED = "their inputs on a new first axis"
    ROWS = "the op as it is, on the rows of all its inputs together"
    JOINED = "no op: each result is its inputs, one after the other"
    SINGLE = "one by one"
    CELL = "one after the other the ops that each is made of, stacked"


class OpSignature:
    """An op on inputs of some kinds: what does not depend on the values, worked out once.

    out     the kind of the result
    view    where the result begins in the first input, when it is a run of that one's elements: no op runs
    roles   where it runs on rows: which inputs have rows
    rule    where it runs stacked: by which rule
    shapes  those of its inputs
    risky   whether running it may fail, so that the user's line must be known
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
        """How ops of this call run together; `stacked` says for each input whether it is stacked, or shared by all."""
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
    """The signatures whose ops one group may hold: they differ at most in the length of the first axis."""

    __slots__ = ("levels", "recording")

    def __init__(self, recording: bool) -> None:
        self.recording = recording
        self.levels: dict[int, Level] = {}  # what is pending, by depth


class Signature:
    """A call in one batch: its kinds distinguish parameters."""

    __slots__ = ("bundle", "call", "kinds", "out", "risky", "view")

    def __init__(self, call: OpSignature, kinds: tuple[ValueKind, ...], out: ValueKind, bundle: Bundle) -> None:
        self.call, self.kinds, self.out, self.bundle = call, kinds, out, bundle
        self.view, self.risky = call.view, call.risky  # for every op that is deferred


def bundle_key(call: OpSignature, kinds: Sequence[ValueKind], attrs: Hashable, recording: bool) -> Hashable:
    """Equal for calls that one group may hold."""
    if call.how is How.JOINED:
        return (call.how, call.out.shape[1:], call.out.dtype, recording)
    if call.how is How.ROWS and call.roles is not None:
        parts = [(k.shape[1:], k.dtype) if rows else k for k, rows in zip(kinds, call.roles, strict=True)]
        return (call.op, attrs, recording, *parts)
    return (call.op, attrs, recording, call.how, *kinds)


_kinds: dict[tuple[Shape, int], ValueKind] = {}
_calls: dict[Hashable, OpSignature] = {}


def kind_of(spec: TensorSpec) -> ValueKind:
    """The kind that all values of a spec share."""
    key = (spec.shape, spec.dtype.num)
    kind = _kinds.get(key)
    if kind is None:
        kind = _kinds[key] = ValueKind(spec)
    return kind


def call_of(op: Op, kinds: Sequence[ValueKind], attrs: Attrs, key: Hashable) -> OpSignature:
    """The call of an op on inputs of these kinds. Raises what `infer` does."""
    shared = tuple([k.shared for k in kinds])
    constant = tuple([k.shared is not k for k in kinds])
    signature = _calls.get((op, shared, constant, key))
    if signature is None:
        signature = _calls[op, shared, constant, key] = OpSignature(op, shared, constant, attrs)
    return signature


def forget_rare() -> None:
    """Empty the tables when they have grown large, between two batches."""
    if len(_calls) > _LIMIT:
        _calls.clear()
        _kinds.clear()


def freeze(attrs: Attrs) -> Hashable:
    """Attributes as a key. Numbers that are equal and not the same, 0.0 and -0.0, have other keys."""
    key = tuple(attrs.values())
    if float not in map(type, key):
        try:
            hash(key)
        except TypeError:  # a slice
            return repr(attrs)
        return key
    return repr(attrs)
