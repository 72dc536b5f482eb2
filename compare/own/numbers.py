"""The numbers that the worker of one engine leaves for another's: what a function holds and is given, what it gives.

A program of PyTorch's that draws its parameters and data draws other ones in another engine. So all engines start from
the numbers of the first, and the gate compares what they give with what it gave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optree

from compare.engines import OWN, Engine, named
from compare.engines.kinds import Kinds
from compare.engines.step import loss_in
from compare.engines.switches import kept
from compare.errors import InputsError
from compare.instruments.runnables import FunctionRunnable

_HELD, _EXPECTED = "held.npz", "expected.npz"


class Reference(NamedTuple):
    """What a call gives in the first engine: its leaves, and the gradients in the order of what holds parameters.

    Of a whole training step it is the value of the first call, and the state `after` it, by the names of tensors.
    """

    value: list[np.ndarray]
    gradients: list[np.ndarray]
    after: Mapping[str, np.ndarray] | None = None


# The engine that is first ------------------------------------------------------------------------------------------


def leave(folder: str, engine: Engine, function: Any, calls: Sequence[tuple[Any, ...]]) -> None:
    """Write what function and calls hold, before anything has run."""
    kinds = engine.kinds()
    if not folder or kinds is None:
        return
    held = {f"held:{name}": tensor for name, tensor in kinds.held(function, calls).items()}
    arguments = {f"given:{i}": tensor for i, tensor in enumerate(kinds.arguments(calls))}
    arrays = {name: np.array(engine.numpy(tensor)) for name, tensor in {**held, **arguments}.items()}
    np.savez(Path(folder, _HELD), **arrays)  # type: ignore[arg-type]


def leave_expected(folder: str, runnable: FunctionRunnable) -> None:
    """Write what each call gives: in float64 where there is that, for it is nearest to what is right."""
    if not folder:
        return
    arrays: dict[str, Any] = {}
    if runnable.training:
        value, _, after = runnable.expected[0].plain
        arrays |= {"trains": np.array(True), **_numbered("value:0", [value])}
        arrays |= {f"after:{name}": array for name, array in _by_name(runnable, after).items()}
    for index, reference in () if runnable.training else runnable.expected.items():
        value, gradients, *_ = reference.best
        arrays |= _numbered(f"value:{index}", [loss_in(value)] if runnable.argnum is not None else [value])
        arrays |= _numbered(f"gradient:{index}", gradients)
    for index, drawn in enumerate(runnable.draws):
        arrays |= {f"drawn:{index}:{i}": numbers for i, numbers in enumerate(drawn)}
    np.savez(Path(folder, _EXPECTED), **arrays)


def _by_name(runnable: FunctionRunnable, after: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The state after a call, by the names that all engines have for its tensors."""
    kinds = runnable.engine.kinds()
    assert kinds is not None  # noqa: S101  (asked before)
    names = {id(tensor): name for name, tensor in kinds.held(runnable.function, runnable.calls).items()}
    state = [(names.get(id(value)), np.asarray(after[label])) for label, value in runnable.state.before.items()]
    return {name: array for name, array in state if name}


def _numbered(before: str, tree: Any) -> dict[str, np.ndarray]:
    leaves: list[Any] = optree.tree_leaves(tree)
    arrays = [np.asarray(leaf) for leaf in leaves if not isinstance(leaf, (str, bytes))]
    return {f"{before}:{i}": array for i, array in enumerate(arrays)}


# The others --------------------------------------------------------------------------------------------------------


def take(folder: str, kinds: Kinds, function: Any, calls: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Give what function and calls hold the numbers of the first engine; the calls, with arrays for tensors.

    Without a folder the numbers stay. Raises InputsError where the two do not hold the same.
    """
    tensors = kinds.held(function, calls)
    stored = _read(folder, _HELD)
    if stored:
        _check("a parameter or a buffer", tensors, _named(stored, "held:"))
        _check("an input", dict(enumerate(kinds.arguments(calls))), _named(stored, "given:"))
        for name, tensor in tensors.items():
            tensor.data.copy_(stored[f"held:{name}"])
    arrays = iter(
        [stored.get(f"given:{i}", tensor.numpy(force=True)) for i, tensor in enumerate(kinds.arguments(calls))]
    )
    taken: list[tuple[Any, ...]] = kinds.mapped(
        lambda leaf: next(arrays) if isinstance(leaf, kinds.tensor) else leaf, list(calls)
    )
    return taken


def _check(what: str, ours: Mapping[Any, Any], theirs: Mapping[str, np.ndarray]) -> None:
    shapes = {str(name): tuple(tensor.shape) for name, tensor in ours.items()}
    expected = {name: array.shape for name, array in theirs.items()}
    if shapes != expected:
        apart = min(set(shapes.items()) ^ set(expected.items()))[0]
        places = [f"is of shape {side[apart]}" if apart in side else "is not there" for side in (expected, shapes)]
        name = apart.partition(".")[2] or apart
        raise InputsError(f"{what}, {name}, {places[0]} in PyTorch and {places[1]} in our engine")


def references(folder: str) -> dict[int, Reference]:
    """For calls by their number what they must give."""
    stored = _read(folder, _EXPECTED)
    values, gradients = _by_call(stored, "value:"), _by_call(stored, "gradient:")
    after = _named(stored, "after:") if "trains" in stored else None
    calls = range(1) if after is not None else values
    return {index: Reference(values.get(index, []), gradients.get(index, []), after) for index in calls}


def has_gradients(folder: str) -> bool:
    """Whether the first engine has taken any; True where there is none."""
    stored = _read(folder, _EXPECTED)
    return not stored or any(name.startswith("gradient:") for name in stored)


def trains(folder: str, function: Any, calls: Sequence[tuple[Any, ...]]) -> bool:
    """Whether the function is a whole training step: as the first engine has seen, or as a call of it shows here.

    It leaves gradients, or changes what is trained.
    """
    if stored := _read(folder, _EXPECTED):
        return "trains" in stored
    engine = named(OWN)
    before = engine.snapshot(function, calls)
    try:
        with kept(engine.switches()):
            function(*calls[0])
        return any(getattr(piece.of, "requires_grad", False) for piece in before.changed())
    finally:
        before.restore()


def draws(folder: str) -> list[list[np.ndarray]]:
    """What each call draws in the first engine; nothing of a function that draws nothing."""
    return list(_by_call(_read(folder, _EXPECTED), "drawn:").values())


def _by_call(stored: Mapping[str, np.ndarray], before: str) -> dict[int, list[np.ndarray]]:
    calls: dict[int, list[np.ndarray]] = {}
    for name, array in _named(stored, before).items():
        calls.setdefault(int(name.partition(":")[0]), []).append(array)
    return calls


def _named(stored: Mapping[str, np.ndarray], before: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(before): array for name, array in stored.items() if name.startswith(before)}


def _read(folder: str, name: str) -> dict[str, np.ndarray]:
    path = Path(folder, name)
    if not folder or not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)
