"""A PyTorch-style function with its calls, the tensors that they change, and the places of these tensors.

The dynamic engine runs the function as its user does, on the objects of its file (`StandingStep`). In a trace symbols
stand in the places of the tensors that it changes, and change as these do (`static.trace.step`). Both draw random
numbers again that another engine drew, or those of the first call (`Replay`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

import dynamic
from compare.engines.containers import CallContainers, apart, to_containers
from compare.engines.graphduel.steps import START, WRITTEN, StartState
from compare.engines.reach import Kinds, ReachedCode, is_users_class
from compare.engines.state import Piece, Snapshot, turns_of
from compare.engines.step import Bindable, BoundCall, Step, Turns
from compare.errors import UnsupportedError
from dynamic.optim.lr_scheduler import LRScheduler
from dynamic.optim.optimizer import Optimizer
from dynamic.random import DrawnNumbers, drawing_from
from graphs import tree
from graphs.errors import count_as_ours
from static.trace.step import Place, at
from static.trace.symbol import Symbol
from static.trace.tracing import of_kind

count_as_ours(__file__)

Calls = Sequence[tuple[Any, ...]]
Draws = Sequence[Sequence[np.ndarray]]
"""For each of several calls, the arrays of random numbers that it draws, in order."""
Draw = Callable[[np.random.Generator], Any]


class Replay(DrawnNumbers):
    """Gives out, in each call, the numbers that a recorded call with the same shapes drew."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.begin()

    def begin(self) -> None:
        """Start a call: the next draw is the first one."""
        self.state = self._draws, 0

    def next(self, shape: tuple[int, ...], draw: Draw) -> np.ndarray:
        """Return the next numbers in the place of `draw`.

        Raises UnsupportedError where no recorded call drew this shape.
        """
        del draw
        calls, place = self.state
        calls = [call for call in calls if len(call) > place and _alike(call[place].shape, shape)]
        if not calls:
            raise UnsupportedError(
                f"the random numbers number {place + 1}, of shape {shape}, are drawn otherwise than in PyTorch, so "
                "that the two cannot be given the same; pass them as an argument"
            )
        self.state = calls, place + 1
        drawn: np.ndarray = calls[0][place]
        return drawn if drawn.shape == shape else drawn.reshape(shape)


class RepeatedDraws(Replay):
    """A replay without recorded draws: each call draws what the first call with its shapes drew, in every mode."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._drawn: dict[Any, np.ndarray] = {}
        super().__init__([])

    def next(self, shape: tuple[int, ...], draw: Draw) -> np.ndarray:
        """Return the numbers first drawn at this place with this shape."""
        calls, place = self.state
        self.state = calls, place + 1
        if (place, shape) not in self._drawn:
            self._drawn[place, shape] = draw(self._chance)
        return self._drawn[place, shape]


def _alike(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether one shape is the other with neighbouring axes joined, so that both hold the same order."""
    ends, others = (set(np.multiply.accumulate((1, *sizes)).tolist()) for sizes in (shape, other))
    return math.prod(shape) == math.prod(other) and (ends <= others or others <= ends)


@contextmanager
def replaying(replay: Replay | None) -> Iterator[None]:
    """A context in which our engine draws from `replay`, from its start; from its own generator if that is None."""
    if replay is None:
        yield
        return
    replay.begin()
    with drawing_from(replay):
        yield


# Programs -------------------------------------------------------------------------------------------------------------


class _Whole:
    """An argument that no engine takes apart: a module, an optimizer or a schedule."""

    def __init__(self, value: Any) -> None:
        self.value = value


class BroughtCalls(CallContainers):
    """The calls as the user made them; `plain` are the same calls of arrays in Python's containers, without modules.

    `taken` are the calls with arrays in the place of tensors.
    """

    def __init__(self, kinds: Kinds, brought: Calls, taken: Calls) -> None:
        stateful = (kinds.module, Optimizer, LRScheduler)

        def each(change: Callable[[Any], Any], calls: Calls) -> list[tuple[Any, ...]]:
            return [kinds.mapped(lambda leaf: change(leaf) if isinstance(leaf, stateful) else leaf, c) for c in calls]

        super().__init__(each(_Whole, brought), _as_brought, list(map(apart, each(lambda _: None, taken))))


def _as_brought(like: Any, value: Any) -> Any:
    """Return a value as in the user's call: an array or a leaf where one was there, and the user's own modules."""
    if isinstance(like, _Whole):
        return like.value
    if isinstance(like, dynamic.Tensor) and like.requires_grad:
        return value.requires_grad_()
    if not isinstance(like, np.ndarray):
        return value
    if isinstance(value, Symbol):
        return of_kind(value, is_tensor=False)
    return value.numpy(force=True) if isinstance(value, dynamic.Tensor) else value


class StandingProgram(ABC):
    """A function, its calls, and the tensors that it trains or changes, by names that all engines share.

    `snapshot_of` makes a snapshot that restores the state of a function and of some calls. The constructor makes one
    call to see what it changes. Gradients may be `wanted`. Raises what the function raises.
    """

    def __init__(
        self, function: Callable[..., Any], brought: Calls, taken: Calls, kinds: Kinds,
        snapshot_of: Callable[[Any, Calls], Snapshot], replay: Replay, *, wanted: bool = True,
    ) -> None:  # fmt: skip
        self.function, self.snapshot_of, self.wanted = function, partial(snapshot_of, function), wanted
        self.calls = BroughtCalls(kinds, brought, taken)
        self.snapshot, self.replay = self.snapshot_of(brought), replay
        code = ReachedCode(function)
        self.trainable = any(tensor.requires_grad for tensor in kinds.held(function, brought).values())
        self.values = [*kinds.leaves(list(brought)), *code.values]
        changed = self._changed_tensors()
        self.start = StartState(self.snapshot)
        self.tensors: dict[str, Any] = kinds.state(function, brought, changed)
        self.labels = kinds.labels(function, brought, self.tensors)
        self.start.others = list(self.tensors.values())
        names = {id(tensor): name for name, tensor in self.tensors.items()}
        outer: list[Any] = [value for value in self.values if isinstance(value, kinds.module)]
        modules = [inner for module in outer for inner in module.modules()]
        spaces: list[Any] = [*map(vars, modules)]
        spaces += [vars(each) for each in self.values if is_users_class(type(each)) and hasattr(each, "__dict__")]
        spaces += _containers([*(v for space in spaces for v in space.values()), *(p.read() for p in code.places)])
        distinct = {id(space): space for space in spaces}.values()
        places = [(each, key) for each in distinct for key in (each if isinstance(each, Mapping) else range(len(each)))]
        places += [(place.space, place.name) for place in code.places]
        self.places: list[Place] = [(s, k, names[id(v)]) for s, k in places if id(v := at(s, k)) in names]
        self.place_of = {name: (space, key) for space, key, name in reversed(self.places)}

    def _changed_tensors(self) -> set[int]:
        """Return the ids of the tensors that a first call changes, except for its arguments."""
        try:
            with replaying(self.replay), dynamic.enable_grad():
                self.differentiate(self.function(*self.calls(self.first_call())))
            self.draws = self.replay.state[1] > 0
            pieces = self.snapshot.changed()
        finally:
            self.snapshot.restore()
        return {id(piece.of) for piece in pieces if isinstance(piece.of, dynamic.Tensor) and not piece.is_argument}

    def first_call(self) -> tuple[Any, ...]:
        """Return the arguments of the call that shows what the function changes."""
        own: tuple[Any, ...] = tree.tree_map(own_tensor, self.calls.plain[0])
        return own

    def taking(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return arguments for the function; tensors are cloned, since the function may change them."""
        return self.calls(tree.tree_map(lambda x: x.clone() if isinstance(x, dynamic.Tensor) else x, tuple(args)))

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """A context in which the function draws the random numbers that it draws in every mode."""
        with replaying(self.replay if self.draws else None):
            yield

    def differentiate(self, value: Any) -> None:
        """Do the part of a step that follows the call, such as the backward pass; nothing by default."""

    @abstractmethod
    def calls_of(self) -> list[tuple[Any, ...]]:
        """Return the arguments for each call of the function that `made` returns."""

    @abstractmethod
    def made(self) -> Callable[..., Any]:
        """Return the function of the trained state and of the arguments."""

    @abstractmethod
    def written(self, argnum: int | None) -> StandingStep:
        """Return the step as its user writes it, for the dynamic engine; see `StandingStep`."""

    def tag_function(self, made: Callable[..., Any]) -> Callable[..., Any]:
        """Give the function of `made` the user function's name, and the attributes that steps read."""
        made.__name__ = getattr(self.function, "__name__", "f")
        vars(made).update({START: self.start, WRITTEN: self.written})
        return made

    @property
    def now(self) -> Mapping[str, Any]:
        """Return the tensors that are now in the places of the tracked ones: a step may have replaced some."""
        return {
            name: tensor if (place := self.place_of.get(name)) is None else at(*place)
            for name, tensor in self.tensors.items()
        }


def _containers(values: Sequence[Any]) -> list[Any]:
    """Return the dicts and lists among values, and inside these."""
    containers, ahead = dict[int, Any](), [value for value in values if type(value) in (dict, list)]
    while ahead:
        value = ahead.pop()
        if id(value) not in containers:
            containers[id(value)] = value
            inside = value.values() if isinstance(value, dict) else value
            ahead += [part for part in inside if type(part) in (dict, list)]
    return [*containers.values()]


def own_tensor(leaf: Any) -> Any:
    """Return a tensor with a copy of an array, since a call may change its arguments; other leaves unchanged."""
    return dynamic.from_numpy(leaf.copy()) if isinstance(leaf, np.ndarray) else leaf


def plain(value: Any) -> Any:
    """Return a result in Python's own containers; tensors are detached, and text becomes None."""

    def numbers(leaf: Any) -> Any:
        return leaf.detach() if isinstance(leaf, (dynamic.Tensor, Symbol)) else None

    return tree.tree_map(lambda leaf: None if isinstance(leaf, (str, bytes)) else leaf, to_containers(value, numbers))


# As its user runs it -------------------------------------------------------------------------------------------------


class StandingStep(Bindable):
    """A step on the objects of the user's file: a run is the user's call and the code that follows it.

    It begins with the state of the start, or with a state that is passed before its arguments.
    """

    def __init__(self, program: StandingProgram) -> None:
        self.program = program
        self.bound: list[tuple[Any, ...]] = []

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step; the file's objects are restored before and after its runs."""
        program, count = self.program, len(self.program.calls.plain[0])
        before, args = args[: len(args) - count], args[len(args) - count :]
        own = tree.tree_map(own_tensor, args)
        call = tuple(program.calls(own))
        self.bound.append(call)
        leaves = zip(tree.leaves(own), tree.leaves(args), strict=True)
        pairs = [(tensor, array) for tensor, array in leaves if isinstance(array, np.ndarray)]

        @contextmanager
        def restore_after() -> Iterator[None]:
            program.snapshot.restore()
            self.load(*before)
            for tensor, array in pairs:
                np.copyto(array_of(tensor), array)
            try:
                with program.drawing(), self.mode():
                    yield
            finally:
                program.snapshot.restore()

        run = self.run(partial(program.function, *call), own)

        def drawing() -> Any:
            program.replay.begin()
            return run()

        return BoundCall(drawing if program.draws else run, self.result(own), restore_after)

    def mode(self) -> AbstractContextManager[Any]:
        """Return the context in which a run happens."""
        return dynamic.enable_grad()

    def load(self, *state: Any) -> None:
        """Load a state into the objects of the file; nothing by default."""

    def run(self, call: Callable[[], Any], args: tuple[Any, ...]) -> Callable[[], Any]:
        """Return the function that is timed, for a call with tensors as arguments."""
        return call

    @abstractmethod
    def result(self, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Return a function that makes the value and the gradients from what a run returns."""

    def turns(self, step: Step) -> Turns:
        """Return the turns of a step: state is restored before each block, and arguments before each call.

        A trace may have left symbols in the objects of the file: these go first.
        """
        self.program.snapshot.restore()
        with step.within():
            return turns_of(self.program.snapshot_of(self.bound), [step.run_each])


def array_of(tensor: Any) -> np.ndarray:
    """Return the memory of a tensor as an array."""
    array: np.ndarray = tensor.detach().numpy()
    return array


def as_array(leaf: Any) -> Any:
    """Return the array of a tensor; other leaves unchanged."""
    return array_of(leaf) if isinstance(leaf, dynamic.Tensor) else leaf


def kept_tensor(tensor: Any) -> Piece:
    """Return a piece that restores a tensor with its gradient."""
    before, gradient = tensor.numpy(force=True).copy(), tensor.grad

    def same() -> bool:
        return tensor.grad is gradient and np.array_equal(tensor.numpy(force=True), before)

    def back() -> None:
        np.copyto(array_of(tensor), before)
        tensor.grad = gradient

    return Piece(same, back, [gradient])
