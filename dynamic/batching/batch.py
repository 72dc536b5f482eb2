"""A batch: the ops that were deferred inside one `batched` block, and running them.

First `Batch`, then the schedules, which decide the order of the ops and which run together. A schedule orders levels,
the ops of one bundle and one depth, and not single ops: there are a hundred times fewer.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from weakref import ref

from dynamic import grad_mode
from dynamic.batching import groups
from dynamic.batching.deferred import DeferredTensor, become, defer_value, install, redirect, running
from dynamic.batching.groups import arrange, separate
from dynamic.batching.moves import part
from dynamic.batching.nodes import (
    NEVER,
    Bundle,
    DeferredNode,
    Elements,
    GroupValues,
    How,
    Level,
    Signature,
    ValueKind,
    View,
    bundle_key,
    call_of,
    forget_rare,
    freeze,
    kind_of,
)
from dynamic.tensor import Tensor, wrap
from graphs import dispatch, promotion
from graphs.errors import GraphError, locate, user_line
from graphs.op import Attrs, Op
from graphs.ops.movement import identity
from graphs.spec import TensorSpec, spec_of


@dataclass
class BatchStats:
    """Counts of the ops that a batch has run so far.

    ops      deferred ops that have run; views (reshape, x[i]) do not count
    groups   the groups they ran in
    single   how many of them have no batching rule, and so ran one by one
    """

    ops: int = 0
    groups: int = 0
    single: int = 0

    @property
    def mean_batch(self) -> float:
        """The mean number of ops per group."""
        return self.ops / self.groups if self.groups else 0.0


class Batch:
    """Ops that wait to run together, until a value is read or the block ends."""

    def __init__(self, strategy: str) -> None:
        if strategy not in SCHEDULES:
            raise ValueError(f"batched: the strategy is one of {', '.join(SCHEDULES)}, not {strategy!r}")
        forget_rare()
        self.detour: ref[Any] | None = None  # by which ops are deferred to it
        self.stats = BatchStats()
        self._schedule = SCHEDULES[strategy]
        self._failed = False
        self._levels: list[Level] = []
        self.values: list[DeferredTensor] = []
        self._many = 1024  # values, so many that it is time to look for those that nobody holds
        self.nothing = Level(self, None, 0)
        self.constants: dict[int, DeferredTensor] = {}
        self._kept: list[Any] = []
        self._constant_kinds: dict[ValueKind, ValueKind] = {}
        self.signatures: dict[Hashable, Signature] = {}
        self._bundles: dict[Hashable, Bundle] = {}
        self.gathered: dict[Hashable, Tensor] = {}  # by what it is made of, while ops run
        self.cells: dict[Hashable, Any] = {}  # what `cells` knows of the functions that were called

    # Deferring ----------------------------------------------------------------------------------------------

    def defer(self, recording: bool, op: Op, args: Sequence[Any], attrs: Attrs) -> DeferredTensor:
        """Defer an op of which some inputs are tensors. Raises the errors of its `infer`, naming the user's line."""
        key: list[Any] = [op, recording]
        inputs: list[Elements] = []
        for arg in args:
            value = arg if type(arg) is DeferredTensor else self.constant(op, arg, args)
            key.append(value.kind)
            inputs.append(value.run)
        if attrs:
            key.append(freeze(attrs))
        signature = self.signatures.get(tuple(key)) or self._signature(op, args, attrs, tuple(key))
        if signature.view is not None:
            return defer_value(View(inputs[0], signature.view), signature.out, self.values)
        depth = 0
        for run in inputs:
            if run.level.depth > depth:
                depth = run.level.depth
        return self.note(signature, inputs, depth)

    def defer_two(self, recording: bool, op: Op, x: Any, y: Any) -> DeferredTensor:
        """`defer` for an op of two inputs that never gives a view, the usual case: in three quarters of the time."""
        if type(x) is not DeferredTensor:
            x = self.constant(op, x, (x, y))
        if type(y) is not DeferredTensor:
            held = self.constants.get(id(y))  # a parameter as a rule
            y = self.constant(op, y, (x, y)) if held is None else held
        key = op, recording, x.kind, y.kind
        signature = self.signatures.get(key) or self._signature(op, (x, y), _NOTHING, key)
        u, v = x.run, y.run
        depth = u.level.depth
        if v.level.depth > depth:
            depth = v.level.depth
        return self.note(signature, (u, v), depth)

    def note(self, signature: Signature, inputs: Sequence[Elements], depth: int) -> DeferredTensor:
        """Append a node of a signature, and return its value; `depth` is the largest depth of its inputs."""
        level = signature.bundle.levels.get(depth) or self.level(signature.bundle, depth)
        node = _new(DeferredNode)  # the lines of its `__init__` and of `defer_value`, without the calls
        node.level, node.signature, node.inputs, node.read = level, signature, inputs, NEVER
        level.nodes.append(node)
        if signature.risky:
            node.line = user_line()
        value = _new(DeferredTensor)
        value.run, value.kind, value.shape = node, signature.out, signature.out.shape
        self.values.append(value)
        return value

    def row(self, value: DeferredTensor, index: int) -> DeferredTensor:
        """value[index] for an index of 0 or more: a view of some elements, without an op."""
        kind = self.row_kind(value.kind)
        return defer_value(View(value.run, index * kind.size), kind, self.values)

    def row_kind(self, kind: ValueKind) -> ValueKind:
        """The kind of value[i] for values of this kind."""
        if kind.row is None:
            row = kind_of(TensorSpec(kind.shape[1:], kind.dtype))
            kind.row = row if kind.shared is kind else self._constant_kind(row)
        return kind.row

    def level(self, bundle: Bundle, depth: int) -> Level:
        """Make the level of pending ops of a bundle whose inputs have at most `depth`."""
        level = bundle.levels[depth] = Level(self, bundle, depth + 1)
        self._levels.append(level)
        if len(self.values) > self._many:
            self._forget_values()
        return level

    def _forget_values(self) -> None:
        """Drop values that no other code holds, early, since memory that is reused soon is still in the cache."""
        self.values = [v for v in self.values if sys.getrefcount(v) > _UNHELD and type(v) is DeferredTensor]
        self._many = 2 * len(self.values) + 1024

    def constant(self, op: Op, arg: Any, args: Sequence[Any]) -> DeferredTensor:
        """The value that stands for a tensor, array or number that is not deferred."""
        if type(arg) is not Tensor:
            arg = self._cast_argument(op, arg, args)
        held = self.constants.get(id(arg))
        return self._constant(op, arg, args) if held is None else held

    def value_of(self, array: Any) -> DeferredTensor:
        """The value that stands for a tensor or array among the arguments of a cell."""
        held = self.constants.get(id(array))
        return self.constant(identity, array, (array,)) if held is None else held

    def _cast_argument(self, op: Op, arg: Any, args: Sequence[Any]) -> Any:
        if dispatch.interpreter_of(arg) is not None:
            raise GraphError(
                locate(f"{op.name}: a {type(arg).__name__} in a batched block; trace functions outside of it")
            )
        try:
            return promotion.weak_to_array(arg, args)
        except GraphError as error:
            raise dispatch.explain_error(op, args, error) from None

    def _constant(self, op: Op, arg: Any, args: Sequence[Any]) -> DeferredTensor:
        self._kept.append(arg)  # as long as its id is in the table
        tensor = arg if type(arg) is Tensor else wrap(arg)
        try:
            kind = kind_of(spec_of(tensor))
        except GraphError as error:
            raise dispatch.explain_error(op, args, error) from None
        parameter = tensor.is_leaf and tensor.requires_grad
        kind = ValueKind(kind.spec, kind, parameter=True) if parameter else self._constant_kind(kind)
        node = DeferredNode(self.nothing, None, ())
        node.block, node.start = GroupValues(tensor), 0
        self.constants[id(arg)] = value = defer_value(node, kind, self._kept)
        return value

    def _constant_kind(self, shared: ValueKind) -> ValueKind:
        return self._constant_kinds.get(shared) or self._constant_kinds.setdefault(
            shared, ValueKind(shared.spec, shared)
        )

    def _signature(self, op: Op, args: Sequence[Any], attrs: Attrs, key: tuple[Any, ...]) -> Signature:
        if self._failed:
            raise GraphError(locate(f"{op.name}: an op of this batch has failed; leave the block, and start another"))
        install(op)
        _, recording, *kinds = key[: 2 + len(args)]
        frozen_attrs = key[2 + len(args) :]
        try:
            call = call_of(op, kinds, attrs, frozen_attrs)
        except GraphError as error:
            raise dispatch.explain_error(op, args, error) from None
        where = bundle_key(call, kinds, frozen_attrs, recording)
        bundle = self._bundles.get(where) or self._bundles.setdefault(where, Bundle(recording))
        constant = call.view is not None and kinds[0].shared is not kinds[0]
        out = self._constant_kind(call.out) if constant else call.out
        return self.signatures.setdefault(key, Signature(call, tuple(kinds), out, bundle))

    # Running ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all pending ops."""
        levels = self._taken()
        self._forget_values()
        plan = [
            group
            for chosen in self._schedule(levels)
            for group in groups.parts([node for level in chosen for node in level.nodes])
        ]
        arrange(plan)
        with running(self):
            recording = grad_mode.now().recording
            for group in plan:
                self._run(group, recording)
        self.gathered = {}
        for level in levels:
            level.finish()

    def _taken(self) -> list[Level]:
        """Take all pending levels, lowest depth first, and close them to further ops."""
        levels, self._levels = sorted(self._levels, key=attrgetter("depth")), []
        for level in levels:
            level.bundle.levels = {}
        return levels

    def _run(self, group: list[DeferredNode], recording: bool) -> None:
        signature = group[0].signature
        try:
            if signature.bundle.recording is recording:
                groups.run(group)
            else:
                with grad_mode.recording(signature.bundle.recording):
                    groups.run(group)
        except Exception:
            self._failed = True
            self.signatures = {}  # so that the next op asks for one
            raise
        groups.let_go(group)  # what has been read last is free, as it would be without a batch
        stats, call = self.stats, signature.call
        stats.ops += len(group) * call.ops
        stats.groups += call.ops
        stats.single += len(group) if call.how is How.SINGLE else 0

    def settle(self, value: DeferredTensor) -> None:
        """Turn a value into its tensor, in memory of its own; runs pending ops. Raises GraphError if its op failed."""
        if self._levels:
            self.run()
        if not value.run.level.ran:
            raise GraphError(locate("a value that was to be computed with others is gone, since one of them failed"))
        # The tensor keeps its history although its value may be read under no_grad.
        with redirect(None), grad_mode.enable_grad():
            become(value, identity(part(value.run.block, value.run.start, value.kind.shape)))

    def close(self) -> None:
        """Settle every value that other code holds, once all ops have run."""
        with running(self):
            self._close()

    def _close(self) -> None:
        values, self.values = [value for value in self.values if type(value) is DeferredTensor], []
        self.constants, self.cells, self._kept = {}, {}, []
        with redirect(None), grad_mode.enable_grad():
            separate([value.run for value in values])
        for value in values:
            if value.run.level.ran:
                self.settle(value)


_NOTHING: Attrs = {}
_new: Any = object.__new__
_UNHELD = 3  # references to a value that nobody holds: the list's, the loop's, and getrefcount's own


Schedule = Callable[[Sequence[Level]], Iterator[list[Level]]]
"""From levels, by depth, to the levels that run together."""


def by_depth(levels: Sequence[Level]) -> Iterator[list[Level]]:
    """Schedule each level alone, the lowest depth first (Looks et al., 2017)."""
    for level in levels:
        yield [level]


def by_agenda(levels: Sequence[Level]) -> Iterator[list[Level]]:
    """Schedule all ready ops of the bundle whose remaining ops have the lowest average depth (Neubig et al., 2017)."""
    depths: defaultdict[Bundle, int] = defaultdict(int)
    counts: defaultdict[Bundle, int] = defaultdict(int)

    def count(level: Level, sign: int) -> None:
        depths[level.bundle] += sign * level.depth * len(level.nodes)
        counts[level.bundle] += sign * len(level.nodes)

    for level in levels:
        count(level, 1)
    _link(levels)
    agenda = _Agenda(levels)
    while agenda.ready:
        chosen = agenda.take(min(agenda.ready, key=lambda bundle: depths[bundle] / counts[bundle]))
        for level in chosen:
            count(level, -1)
        yield chosen


def by_path(levels: Sequence[Level]) -> Iterator[list[Level]]:
    """Schedule all ready ops of the bundle that starts the longest path to the end, as in list scheduling (Hu, 1961).

    Chains of different lengths then end together, rather than begin together.
    """
    _link(levels)
    for level in reversed(levels):
        level.rank = max([user.rank for user in level.users], default=0) + 1
    agenda = _Agenda(levels)
    while agenda.ready:
        yield agenda.take(max(agenda.ready, key=agenda.ranks.__getitem__))


def _link(levels: Sequence[Level]) -> None:
    """Set for each level the levels that read it, and the number of levels it waits for."""
    for level in levels:
        sources = _pending_levels(level.nodes)
        level.waiting = len(sources)
        for source in sources:
            source.users.append(level)


class _Agenda:
    """The levels whose inputs are ready, by bundle, and the highest rank in each bundle."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.ready: defaultdict[Bundle, list[Level]] = defaultdict(list)
        self.ranks: defaultdict[Bundle, int] = defaultdict(int)
        for level in levels:
            if not level.waiting:
                self._add(level)

    def _add(self, level: Level) -> None:
        self.ready[level.bundle].append(level)
        self.ranks[level.bundle] = max(self.ranks[level.bundle], level.rank)

    def take(self, bundle: Bundle) -> list[Level]:
        """Remove and return the ready levels of a bundle; levels that waited only for these become ready."""
        chosen = self.ready.pop(bundle)
        del self.ranks[bundle]
        for level in chosen:
            for user in level.users:
                user.waiting -= 1
                if not user.waiting:
                    self._add(user)
        return chosen


def _pending_levels(nodes: list[DeferredNode]) -> set[Level]:
    """The levels of the inputs of some nodes that have not run."""
    return {level for level in {run.level for node in nodes for run in node.inputs} if not level.ran}


SCHEDULES: dict[str, Schedule] = {"path": by_path, "agenda": by_agenda, "depth": by_depth}
