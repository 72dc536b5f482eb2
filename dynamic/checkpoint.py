"""checkpoint: keep the inputs of a part of a model instead of its saved values, and run the part again in backward.

Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost", 2016. As in PyTorch without its
reentrant mode, the tape itself is kept, so that gradients flow to every tensor the function reads, its arguments or
not. Only the saved values are dropped, and come back when backward asks for the first of them.
"""

from __future__ import annotations

import _random
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from operator import attrgetter
from threading import get_ident
from typing import Any
from weakref import ref

import numpy as np

from dynamic import grad_mode, inplace
from dynamic.node import Leaf, Node
from dynamic.tensor import Tensor, wrap
from graphs import capture, dispatch, tree
from graphs.blocks import Block, Hold, enter, undo_after
from graphs.errors import NotDifferentiableError, locate, user_line
from graphs.spec import spec_of

Signature = tuple[Any, ...]

drawn_from: list[Any] = []
"""What draws random numbers by itself, by the generator of NumPy's that is its attribute `numpy`."""


def checkpoint(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`f(*args, **kwargs)`, whose saved values are computed again in backward instead of being held until then.

    Costs a second run of f, which must do the same again: its arguments may not change in between. Random numbers from
    the generators of `random`, `numpy.random` and this engine, or from a generator among the arguments, are drawn
    again. As in PyTorch the second run ends when the last saved value is there: changes that f makes after it happen
    once. Arguments and results are nested containers; other tensors that f reads get their gradients too. Checkpoints
    nest, and have gradients of any order. Raises InplaceError when f changes an argument in place; backward raises
    NotDifferentiableError when the second run records other ops or shapes than the first.
    """
    if not grad_mode.is_grad_enabled():
        return f(*args, **kwargs)
    step = capture.step_trace()
    if step is not None:
        return step.checkpoint(TracedCheckpoint(f, args, kwargs))
    segment = _Segment(f, args, kwargs)
    result = f(*args, **kwargs)
    segment.drop(result)
    return result


class EnoughError(Exception):
    """A signal, not an error: all dropped values are there again, and the second run ends."""


_pending: ContextVar[list[bool] | None] = ContextVar("pending", default=None)


def end_second_run() -> None:
    """Raise EnoughError now, or inside `one_op` at the end of that block."""
    pending = _pending.get()
    if pending is None:
        raise EnoughError
    pending.append(True)


@contextmanager
def one_op() -> Iterator[None]:
    """Count the ops inside as one PyTorch op: a second run does not end between them, but after the last."""
    pending = list[bool]()
    before = _pending.set(pending)
    try:
        yield
    finally:
        _pending.reset(before)
    if pending:
        raise EnoughError


class TracedCheckpoint:
    """A checkpoint in the trace of a step, where no tape records: the call, and how to repeat it."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._f, self._args, self._kwargs = f, args, kwargs
        self._generators = Generators(tree.leaves((args, kwargs)))

    def __call__(self) -> Any:
        """Call the function, and return its result."""
        return self._f(*self._args, **self._kwargs)

    def again(self, around: AbstractContextManager[Any]) -> None:
        """Repeat the call inside the block `around`, with the same random numbers; `end` may end it early."""
        with _Rewound(self._generators), around, suppress(EnoughError):
            self()

    @staticmethod
    def end() -> None:
        """End the repeated call early: all dropped values are there again."""
        end_second_run()


class _Segment:
    """One checkpointed call: how to run it again, and its nodes that have saved arrays, in the order of recording.

    `times` are the times at which these nodes were recorded, counted from the start of the call.
    """

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.f = f
        self.arguments, self.structure = tree.flatten((args, kwargs))  # a caller may change its containers
        self.generators = Generators(self.arguments)
        self.line = user_line()
        self.start = inplace.clock.tick()
        self.nodes: list[ref[Node]] = []  # weak, since each node holds the segment
        self.signatures: list[Signature] = []
        self.times: list[int] = []
        self.leaves: list[Leaf] = []

    @property
    def saved(self) -> tuple[Any, ...]:
        """The array arguments, which are kept to run the function again."""
        arrays = (a._data if type(a) is Tensor else a for a in self.arguments)
        return tuple(a for a in arrays if isinstance(a, np.ndarray))

    def drop(self, result: Any) -> None:
        """Drop the values that the nodes of the function have saved."""
        inplace.check_unchanged("checkpoint", self.saved, self.start)
        nodes = _nodes_since(self.start, result)
        self.leaves = [edge for node in nodes for edge in node.edges if type(edge) is Leaf]
        saving = list(filter(_has_saved, nodes))
        self.signatures = list(map(_signature, saving))
        self.times = [node.sequence - self.start for node in saving]
        self.nodes = list(map(ref, saving))
        for number, node in enumerate(saving):
            node.saved = _Hole(self, number)

    def fill(self) -> None:
        """Run the function again, and give its nodes their saved values back."""
        again = self._again()
        signatures = list(map(_signature, again))
        if signatures != self.signatures:
            raise NotDifferentiableError(self._difference(signatures))
        for number, (held, node) in enumerate(zip(self.nodes, again, strict=True)):
            original = held()
            hole = None if original is None else original.saved
            if original is not None and type(hole) is _Hole and (hole.segment, hole.number) == (self, number):
                original.saved = inner = node.saved
                if type(inner) is _Hole:  # of a checkpoint inside this one
                    inner.segment.nodes[inner.number] = held

    def _again(self) -> list[Node]:
        args, kwargs = tree.unflatten(self.structure, self.arguments)
        start, recorded = inplace.clock.tick(), dict[int, Node]()

        def note(result: Any) -> None:
            edge = result._edge if type(result) is Tensor else None
            if type(edge) is Node and edge.sequence > start:
                recorded[edge.sequence - start] = edge
                if edge.sequence - start == self.times[-1] and self._are_these(recorded):
                    end_second_run()

        with grad_mode.enable_grad(), _Rerun(self.generators, self.leaves, note):
            try:
                return list(filter(_has_saved, _nodes_since(start, self.f(*args, **kwargs))))
            except EnoughError:
                return [recorded[time] for time in self.times]
            except Exception as error:
                error.add_note(f"in the second run of the checkpoint at {self.line}")
                raise

    def _are_these(self, recorded: Mapping[int, Node]) -> bool:
        """Whether a second run has recorded all nodes that the first run saved values for, with the same signatures."""
        return all(
            time in recorded and _signature(recorded[time]) == signature
            for time, signature in zip(self.times, self.signatures, strict=True)
        )

    def _difference(self, signatures: Sequence[Signature]) -> str:
        pairs = enumerate(zip(self.signatures, signatures, strict=False))
        first = next((i for i, (before, now) in pairs if before != now), min(len(signatures), len(self.signatures)))
        before, now = (_describe_signature(run, first) for run in (self.signatures, signatures))
        return (
            f"the second run of the checkpoint at {self.line} recorded {now} where the first recorded {before}; "
            "let the function depend on its arguments alone"
        )


class _Hole(tuple[Any, ...]):  # noqa: SLOT001  (a tuple has no room for slots)
    """Takes the place of a node's saved values until backward reaches the node.

    As a tuple it holds the arguments that are kept instead: these may not be changed in place, and count as saved.
    """

    segment: _Segment
    number: int

    def __new__(cls, segment: _Segment, number: int) -> _Hole:  # noqa: PYI034  (nobody derives from it)
        hole = super().__new__(cls, segment.saved)
        hole.segment, hole.number = segment, number
        return hole

    def fill(self) -> None:
        """Give the node its saved values, or the hole of an inner checkpoint, which is filled in turn."""
        self.segment.fill()


class saved_tensors_hooks(Block):  # noqa: N801  (a context manager, named as PyTorch names it)
    """Keep `pack_hook(tensor)` for each value that an op inside the block saves, and read it by `unpack_hook` later.

    Backward calls `unpack_hook` once for each value, when it reaches the op. What a `Function` of the user saves is
    kept as it is. Raises NotDifferentiableError there for a result that is no tensor of the shape and dtype.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack, self.unpack = pack_hook, unpack_hook

    def __enter__(self) -> None:
        self._start = inplace.clock.tick()
        enter(dispatch.detours, self.hold(), self._packing)

    def _packing(self, interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
        def run(op: Any, args: Sequence[Any], attrs: dispatch.Attrs) -> Any:
            result = interpreter(op, args, attrs)
            node = result._edge if type(result) is Tensor else None
            if type(node) is Node and type(node.saved) is tuple and node.sequence > self._start and _has_saved(node):
                node.saved = _Packing(node, self)
            return result

        return run


class _Packing(tuple[Any, ...]):  # noqa: SLOT001  (a tuple has no room for slots)
    """Takes the place of a node's saved values, which hooks have packed; empty, since nothing is kept as it was."""

    _node: ref[Node]
    _hooks: saved_tensors_hooks
    _kept: list[tuple[Any, Any]]  # the spec of each value, None of what is no array, and what stands for it

    def __new__(cls, node: Node, hooks: saved_tensors_hooks) -> _Packing:  # noqa: PYI034  (nobody derives from it)
        """Pack the saved values of a node."""
        made = super().__new__(cls)
        made._node, made._hooks = ref(node), hooks
        with grad_mode.no_grad():
            made._kept = [
                (spec_of(value), hooks.pack(wrap(value))) if isinstance(value, np.ndarray) else (None, value)
                for value in node.saved or ()
            ]
        return made

    def fill(self) -> None:
        """Give the node its saved values."""
        node = self._node()
        if node is not None:
            with grad_mode.no_grad():
                node.saved = tuple([self._value(spec, packed) for spec, packed in self._kept])

    def _value(self, spec: Any, packed: Any) -> Any:
        if spec is None:
            return packed
        value = self._hooks.unpack(packed)
        if not issubclass(type(value), Tensor) or spec_of(value) != spec:
            what = spec_of(value) if issubclass(type(value), Tensor) else type(value).__name__
            raise NotDifferentiableError(
                locate(f"saved_tensors_hooks: unpack_hook gave {what} for {spec}; return what pack_hook was given")
            )
        return value._data


def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> AbstractContextManager[None]:
    """A block in which nothing changes: saved values are on the CPU."""
    del pin_memory, device_type
    return nullcontext()


def _nodes_since(start: int, result: Any) -> list[Node]:
    """The nodes that led to the tensors in a result and were recorded after `start`, in the order of recording."""
    outputs = [leaf._edge for leaf in tree.leaves(result) if type(leaf) is Tensor]
    seen: dict[Node, None] = {}
    stack: list[Any] = outputs[::-1]
    while stack:
        node = stack.pop()
        if type(node) is Node and node.sequence > start and node not in seen:
            seen[node] = None
            stack += node.edges
    return sorted(seen, key=attrgetter("sequence"))


def _has_saved(node: Node) -> bool:
    """Whether a node has saved arrays, or had some that an inner checkpoint dropped."""
    return type(node.saved) is _Hole or any(isinstance(value, np.ndarray) for value in node.saved or ())


def _signature(node: Node) -> Signature:
    """The op and the specs of the saved arrays of a node; two runs of one function must have the same."""
    held = node.saved
    if type(held) is _Hole:
        return held.segment.signatures[held.number]
    return node.op.name, *(spec_of(value) for value in held or () if isinstance(value, np.ndarray))


def _describe_signature(signatures: Sequence[Signature], number: int) -> str:
    if number >= len(signatures):
        return "nothing"
    name, *specs = signatures[number]
    return f"{name}({', '.join(map(repr, specs))})"


class _Rerun(Block):
    """A second run: random generators repeat their numbers, and the leaves of a segment require gradients.

    Each result of an op in this thread is passed to `note`. The leaves are set again since those of a transform stop
    requiring gradients when its function has run.
    """

    def __init__(self, generators: Generators, leaves: Sequence[Leaf], note: Callable[[Any], None]) -> None:
        self._generators, self._leaves, self._note, self._thread = generators, leaves, note, get_ident()

    def __enter__(self) -> None:
        hold = self.hold()
        self._generators.rewind(hold)
        enter(dispatch.detours, hold, self._noting)
        for leaf in self._leaves:
            tensor = leaf.tensor()
            if tensor is not None and tensor._edge is not leaf:
                undo_after(hold, partial(setattr, tensor, "_edge", tensor._edge))
                tensor._edge = leaf

    def _noting(self, interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
        def run(op: Any, args: Sequence[Any], attrs: dispatch.Attrs) -> Any:
            result = interpreter(op, args, attrs)
            if get_ident() == self._thread:
                self._note(result)
            return result

        return run


class _Rewound(Block):
    """A block in which random generators repeat the numbers that the first run drew."""

    def __init__(self, generators: Generators) -> None:
        self._generators = generators

    def __enter__(self) -> None:
        self._generators.rewind(self.hold())


class Generators:
    """The random generators that a function may draw from, global or among its arguments, and their saved states."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        behind = [getattr(value, "numpy", None) for value in (*arguments, *drawn_from)]
        self._own = [value.bit_generator for value in (*arguments, *behind) if hasattr(value, "bit_generator")]
        self._state = self._read()

    def _read(self) -> tuple[Any, ...]:
        return random.getstate(), np.random.get_state(), [g.state for g in self._own]  # noqa: NPY002

    def rewind(self, hold: Hold) -> None:
        """Set the generators to their saved states, until the block of a hold has ended."""
        python, numpy, own = self._read()
        shared: random.Random = random.setstate.__self__  # type: ignore[attr-defined]  # the module's own generator
        undo_after(hold, partial(_random.Random.setstate, shared, python[1]))  # its own `setstate` is Python
        undo_after(hold, partial(setattr, shared, "gauss_next", python[2]))
        undo_after(hold, partial(np.random.set_state, numpy))
        for generator, state in zip(self._own, own, strict=True):
            for _ in range(2):  # NumPy divides large integers there, where Ctrl-C can end it: the other is made
                undo_after(hold, partial(setattr, generator, "state", state))
        python, numpy, own = self._state
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002  (whoever draws from it, in a function that is run again)
        for generator, state in zip(self._own, own, strict=True):
            generator.state = state
