"""Data that one process leaves in a folder for another: numbers, or a function with its calls. There is no pickle.

A program of PyTorch's that draws its parameters and data draws other ones in another engine. So all engines start from
the numbers of the first, and the gate compares their results with its results.

A job names the folder of a bundle as its source, `compare.subjects.exchange:FOLDER`, and the worker loads that as it
does any workload: `__getattr__` below reads it. The folder is temporary and this program's own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import optree

from compare import engines
from compare.engines import OWN, Engine, find_engine
from compare.engines.containers import named_parts, of_class
from compare.engines.graphduel import standin
from compare.engines.graphduel.programs import RepeatedDraws, Replay, StandingProgram
from compare.engines.graphduel.training import LossProgram, TrainingProgram
from compare.engines.process import keep_switches
from compare.engines.reach import Kinds, module_of
from compare.engines.step import loss_in
from compare.errors import InputsError, count_as_users
from compare.instruments import parity
from compare.instruments.bench import Bench
from compare.instruments.parity import MOST_EXAMPLES, ExpectedResult
from compare.records.record import DYNAMIC
from compare.subjects import origin
from compare.subjects.case import FunctionCase, Inputs, calls_in, case_of
from compare.subjects.origin import Origin
from compare.subjects.subject import SIZE, Calls, Function, Situation, Subject
from compare.workloads import Workload
from compare.workloads.base import Case

# Numbers -------------------------------------------------------------------------------------------------------------


_HELD, _EXPECTED = "held.npz", "expected.npz"


class Reference(NamedTuple):
    """The result of a call in the first engine: its leaves, and the gradients in the order of the parameters.

    For a whole training step it is the value of the first call, and the state `after` it, by the names of tensors.
    """

    value: list[np.ndarray]
    gradients: list[np.ndarray]
    after: Mapping[str, np.ndarray] | None = None


# The engine that is first ------------------------------------------------------------------------------------------


def leave_numbers(folder: str, engine: Engine, case: FunctionCase) -> None:
    """Write the tensors that function and calls hold, before anything has run."""
    kinds = engine.state.kinds()
    if not folder or kinds is None:
        return
    held = {f"held:{name}": tensor for name, tensor in kinds.held(case.function, case.calls).items()}
    arguments = {f"given:{i}": tensor for i, tensor in enumerate(kinds.arguments(case.calls))}
    arrays = {name: np.array(engine.numpy(tensor)) for name, tensor in {**held, **arguments}.items()}
    np.savez(Path(folder, _HELD), **arrays)  # type: ignore[arg-type]


def leave_expected(folder: str, bench: Bench) -> None:
    """Write the result of each call: in float64 where that exists, as it is the most accurate.

    Where calls go on with the state of the call before, the first alone: our engine begins each with the same state.
    """
    if not folder:
        return
    arrays: dict[str, Any] = {}
    if bench.state.training:
        value, _, after = bench.references.expected[0].plain
        arrays |= {"trains": np.array(True), **_number_arrays("value:0", [value])}
        arrays |= {f"after:{name}": array for name, array in _by_name(bench, after).items()}
    for index, reference in () if bench.state.training else bench.references.expected.items():
        if index and bench.state.goes_on:
            break
        value, gradients, *_ = reference.best
        arrays |= _number_arrays(f"value:{index}", [loss_in(value)] if bench.argnum is not None else [value])
        arrays |= _number_arrays(f"gradient:{index}", gradients)
    for index, drawn in enumerate(bench.references.draws):
        arrays |= {f"drawn:{index}:{i}": numbers for i, numbers in enumerate(drawn)}
    np.savez(Path(folder, _EXPECTED), **arrays)


def _by_name(bench: Bench, after: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the state after a call, by the names that all engines have for its tensors."""
    kinds = bench.engine.state.kinds()
    assert kinds is not None  # noqa: S101  (the caller has checked it)
    names = {id(tensor): name for name, tensor in kinds.held(bench.case.loss, bench.case.examples).items()}
    before = bench.state.reader.before
    state = [(names.get(id(value)), np.asarray(after[label])) for label, value in before.items()]
    return {name: array for name, array in state if name}


def _number_arrays(before: str, tree: Any) -> dict[str, np.ndarray]:
    leaves: list[Any] = optree.tree_leaves(tree)
    arrays = [np.asarray(leaf) for leaf in leaves if not isinstance(leaf, (str, bytes))]
    return {f"{before}:{i}": array for i, array in enumerate(arrays)}


# The others --------------------------------------------------------------------------------------------------------


def take_numbers(folder: str, kinds: Kinds, function: Any, calls: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Copy the first engine's numbers into the tensors of function and calls; return the calls with arrays for tensors.

    Without a folder the numbers stay. Raises InputsError where the two engines hold different tensors.
    """
    tensors = kinds.held(function, calls)
    stored = _read(folder, _HELD)
    if stored:
        _check("a parameter or a buffer", tensors, _select_named(stored, "held:"))
        _check("an input", dict(enumerate(kinds.arguments(calls))), _select_named(stored, "given:"))
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


def stored_references(folder: str) -> dict[int, Reference]:
    """Return the expected results of the first engine, by the index of the call."""
    stored = _read(folder, _EXPECTED)
    values, gradients = _by_call(stored, "value:"), _by_call(stored, "gradient:")
    after = _select_named(stored, "after:") if "trains" in stored else None
    calls = range(1) if after is not None else values
    return {index: Reference(values.get(index, []), gradients.get(index, []), after) for index in calls}


def has_gradients(folder: str) -> bool:
    """Return whether the first engine has taken gradients; True where there is no first engine."""
    stored = _read(folder, _EXPECTED)
    return not stored or any(name.startswith("gradient:") for name in stored)


def has_training(folder: str, function: Any, calls: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether the function is a whole training step, by the first engine's finding or by a call here.

    A call shows it if it leaves gradients, or changes trained tensors.
    """
    if stored := _read(folder, _EXPECTED):
        return "trains" in stored
    engine = find_engine(OWN)
    before = engine.state.snapshot(function, calls)
    try:
        with keep_switches(engine.process.switches()):
            function(*calls[0])
        return any(getattr(piece.of, "requires_grad", False) for piece in before.changed())
    finally:
        before.restore()


def _by_call(stored: Mapping[str, np.ndarray], before: str) -> dict[int, list[np.ndarray]]:
    calls: dict[int, list[np.ndarray]] = {}
    for name, array in _select_named(stored, before).items():
        calls.setdefault(int(name.partition(":")[0]), []).append(array)
    return calls


def _select_named(stored: Mapping[str, np.ndarray], before: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(before): array for name, array in stored.items() if name.startswith(before)}


def _read(folder: str, name: str) -> dict[str, np.ndarray]:
    path = Path(folder, name)
    if not folder or not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


# A function of a file of PyTorch's as our engine runs it, with the numbers that PyTorch's worker has left ------------


def program_of(subject: Subject, situation: Situation) -> tuple[Function, Calls]:
    """Return the function of the state that it trains, or of the parameters of a loss, and its calls with arrays.

    Raises InputsError, and the errors of the file.
    """
    standin.stand_in()
    numbers = situation.numbers
    function, inputs = origin.load_function(subject.function, subject.inputs)
    count_as_users(module_of(function))
    brought = calls_in(inputs, function)
    engine = engines.find_engine(engines.OWN)
    kinds = engine.state.kinds()
    assert kinds is not None  # noqa: S101  (our engine has PyTorch's names)
    taken = take_numbers(numbers, kinds, function, brought)
    # The random numbers of each call in the first engine; none for a function that draws none.
    draws = list(_by_call(_read(numbers, _EXPECTED), "drawn:").values())
    replay = RepeatedDraws(situation.seed) if not numbers else Replay(draws)
    kind: type[StandingProgram] = TrainingProgram if has_training(numbers, function, brought) else LossProgram
    wanted = subject.gradient is not False and has_gradients(numbers)
    program = kind(function, brought, taken, kinds, engine.state.snapshot, replay, wanted=wanted)
    return program.made(), Inputs.like(brought, program.calls_of())


def references(case: Case, name: str, numbers: str) -> list[ExpectedResult]:
    """Return the expected results of calls from the shortest to the longest, by PyTorch.

    Without PyTorch's numbers they are of our dynamic engine. Raises InputsError where gradients are not of the same
    parameters.
    """
    eager = engines.step(DYNAMIC, case)
    theirs = stored_references(numbers) if numbers else {}
    expected = []
    for index in parity.sample(case.lengths, MOST_EXAMPLES):
        ours = eager(*case.examples[index])
        reference = _like(ours, theirs[index], name) if index in theirs else ours
        expected.append(ExpectedResult(case, index, reference, ours, foreign=index in theirs))
    return expected


def _like(ours: Any, theirs: Reference, name: str) -> Any:
    """Return PyTorch's result in the containers of our engine's result.

    For a training step it has the value and the tensors after it, some of which only PyTorch may have; sums of
    optimizers are ours.
    """
    if theirs.after is not None:
        (value, state), _ = ours
        after = {name: theirs.after.get(name, own) for name, own in state["tensors"].items()}
        return (_fill_structure("values", value, theirs.value, name), {**state, "tensors": after}), ()
    value, gradients = ours
    return _fill_structure("values", value, theirs.value, name), _fill_structure(
        "gradients", gradients, theirs.gradients, name
    )


def _fill_structure(what: str, ours: Any, leaves: list[Any], name: str) -> Any:
    structure = optree.tree_structure(ours)
    if structure.num_leaves != len(leaves):
        counts = f"{len(leaves)} in PyTorch and {structure.num_leaves} in our engine"
        raise InputsError(f"{name} gives another number of {what}: {counts}")
    return optree.tree_unflatten(structure, leaves)


# Bundles -------------------------------------------------------------------------------------------------------------


EMPTY: Mapping[Any, Any] = MappingProxyType({})
_TREE, _ARRAYS = "function.json", "arrays.npz"


def __getattr__(folder: str) -> Workload:
    """Return the workload in a folder; it is the attribute of this module with the folder's name."""
    path = Path(folder, _TREE)
    if not path.is_file():
        raise AttributeError(f"no bundle {folder}")
    document = json.loads(path.read_text(encoding="utf-8"))
    sys.path[:] = [*document["path"], *(entry for entry in sys.path if entry not in document["path"])]
    with np.load(Path(folder, _ARRAYS), allow_pickle=False) as stored:
        arrays = [stored[f"a{i}"] for i in range(len(stored.files))]
    dims = _decode(document["dims"], [])
    if "plan" in document:
        subject = Subject.from_dict(document["plan"]["subject"])
        name, (f, inputs) = subject.name, program_of(subject, Situation(**document["plan"]["situation"]))
    else:
        origin = Origin(**document["origin"])
        name, f = origin.name, origin.load()
        inputs = _decode(document["inputs"], arrays, origin.space())
    return workload_of(
        name, lambda: replace(case_of(f, inputs, document["gradient"], dims), branches=document["branches"])
    )


def workload_of(name: str, case: Callable[[], Case]) -> Workload:
    """Return a user's function as a workload of one size."""
    return Workload(name, name, "A function of your own.", "open", "own", {SIZE: {}}, case)


def write_bundle(folder: Path, origin: Origin, case: FunctionCase, dims: Any) -> str:
    """Write the bundle from which the case was made; return the source that names it.

    Raises InputsError for an input that is no plain container.
    """
    arrays: list[np.ndarray] = []
    values = origin.space().items()
    modules = {
        id(value): name for name, value in values if hasattr(value, "named_parameters") or isinstance(value, type)
    }
    document = {
        "origin": asdict(origin),
        "inputs": _encode(list(case.calls), arrays, modules),
        "dims": _encode(dims, []),
        "gradient": case.argnum is not None,
        "branches": case.branches,
        "path": [str(Path(entry).resolve()) for entry in sys.path],
    }
    return _write_bundle(folder, document, arrays)


def write_again(folder: Path, plan: Mapping[str, Any], case: Case, dims: Any) -> str:
    """Write a bundle whose workers read the user's PyTorch file again, as planned; return its source."""
    document = {
        "plan": dict(plan),
        "dims": _encode(dims, []),
        "gradient": case.argnum is not None,
        "branches": case.branches,
        "path": [str(Path(entry).resolve()) for entry in sys.path],
    }
    return _write_bundle(folder, document, [])


def _write_bundle(folder: Path, document: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> str:
    np.savez(folder / _ARRAYS, **{f"a{i}": array for i, array in enumerate(arrays)})  # type: ignore[arg-type]
    (folder / _TREE).write_text(json.dumps(document), encoding="utf-8")
    return f"{__name__}:{folder}"


def _encode(value: Any, arrays: list[np.ndarray], names: Mapping[int, str] = EMPTY) -> Any:
    """Return JSON that tells containers apart; an array occurs once, and a known object is written as its name."""
    if id(value) in names:
        return {"global": names[id(value)]}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        place = next((i for i, array in enumerate(arrays) if array is value), None)
        if place is None:
            arrays.append(np.asarray(value))
            place = len(arrays) - 1
        return {"array": place}
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    if type(value) is dict:
        return {"dict": [[_encode(k, arrays), _encode(v, arrays, names)] for k, v in value.items()]}
    parts = named_parts(value)
    if id(type(value)) in names and parts is not None:
        return {"container": [names[id(type(value))], _encode(parts, arrays, names)]}
    if type(value) is slice:
        return {"slice": [_encode(part, arrays) for part in (value.start, value.stop, value.step)]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_encode(entry, arrays, names) for entry in value]}
    raise InputsError(
        f"a {type(value).__name__} among the inputs cannot be sent to a worker; use processes=0, or make it a "
        "global of the function's file if it is a module"
    )


def _decode(document: Any, arrays: Sequence[np.ndarray], space: Mapping[str, Any] = EMPTY) -> Any:
    ((kind, value),) = document.items()
    if kind == "global":
        return space[value]
    if kind == "array":
        return arrays[value]
    if kind == "dict":
        return {_decode(key, arrays): _decode(entry, arrays, space) for key, entry in value}
    if kind == "container":
        name, parts = value
        return of_class(space[name], _decode(parts, arrays, space))
    if kind == "slice":
        return slice(*(_decode(part, arrays) for part in value))
    if kind in ("list", "tuple"):
        entries = [_decode(entry, arrays, space) for entry in value]
        return entries if kind == "list" else tuple(entries)
    return value
