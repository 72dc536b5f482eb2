"""What optimizers keep between the steps of a compiled training step.

One of ours has a rule (`graphs.optim`), and keeps sums for each group. One of the user's own runs in the trace as it is
written (`WrittenOptimizer`): symbols stand for its parameters and for the tensors and numbers in its `state`. What it
keeps afterwards (`KeptState`) is an output of the graph, and an input of the next call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from graphs import capture, promotion, tree
from graphs.errors import ControlFlowError, GraphError, locate
from graphs.op import is_ours
from static.convert.stage.places import Contents, journal, note_new
from static.trace.step import StepTrace
from static.trace.symbol import Symbol
from static.trace.tracing import current, of_kind
from static.trace.views import known_value

Numbers = Sequence[set[str]]
"""For each group of an optimizer, the names of its options that change from step to step."""
Names = Mapping[int, str]
"""The names of parameters, by the id of the tensor or of its symbol."""


def is_ruled(optimizer: Any) -> bool:
    """Whether an optimizer's step is a function of gradients and sums, and decides nothing by values."""
    return hasattr(optimizer, "rule")


def is_written(optimizer: Any) -> bool:
    """Whether an optimizer is of the user's own, with a step that changes parameters by itself."""
    return not is_ours(type(optimizer)) and not is_ruled(optimizer)


def kept_by(optimizer: Any, names: Names, numbers: Numbers = ()) -> Any:
    """Return what an optimizer keeps: the sums of one of ours, the `KeptState` of one of the user's own.

    Raises GraphError where parameters of one group have made different numbers of steps.
    """
    return kept_state(optimizer, names, numbers) if is_written(optimizer) else sums_of(optimizer)


# The sums of our optimizers -------------------------------------------------------------------------------------------


def trainable_params(group: Mapping[str, Any]) -> list[Any]:
    """Return the parameters of a group that have gradients."""
    return [param for param in group["params"] if param.requires_grad]


def sums_of(optimizer: Any) -> list[dict[str, Any]]:
    """Return the sums that an optimizer keeps, by group, as its rule takes them; [] for one without a rule.

    Raises GraphError where parameters of one group have made different numbers of steps.
    """
    groups = optimizer.param_groups if is_ruled(optimizer) else ()
    return [_withcommon_count(optimizer, group, slot_sums(optimizer, group)) for group in groups]


def slot_sums(optimizer: Any, group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sums of one group; a parameter without a step has the sums from before its first step."""
    params = trainable_params(group)
    sums: dict[str, Any] = optimizer.rule(group).init([param.detach().numpy() for param in params])
    for i, param in enumerate(params):
        state = optimizer.state.get(param, {})
        for slot, name in optimizer.slots_of(param).items():
            if name in state:
                sums[slot] = [*sums[slot][:i], state[name].numpy(), *sums[slot][i + 1 :]]
    return sums


def _withcommon_count(optimizer: Any, group: Mapping[str, Any], sums: dict[str, Any]) -> dict[str, Any]:
    count = common_count(optimizer, [steps_of(optimizer, param) for param in trainable_params(group)])
    return {**sums, "count": np.asarray(count)} if "count" in sums else sums


def steps_of(optimizer: Any, param: Any) -> int:
    """Return how many steps of a parameter an optimizer has made."""
    state = optimizer.state.get(param, {})
    return int(state.get("step", 1 if state else 0))


def common_count(optimizer: Any, counts: Iterable[int]) -> int:
    """Return the number of steps that parameters have made; parameters without a step do not count.

    Raises GraphError where one has made more steps than another.
    """
    different = sorted(set(counts) - {0})
    if len(different) > 1:
        raise GraphError(
            locate(
                f"{type(optimizer).__name__}: parameters of one group have made {different[0]} and {different[-1]} "
                "steps, and a graph counts once for all; give those that are not trained in each step a group of their "
                "own"
            )
        )
    return different[0] if different else 0


def keep_sums(optimizer: Any, group: Mapping[str, Any], sums: Mapping[str, Any], updates: Mapping[int, int]) -> None:
    """Store the sums in an optimizer; `updates` counts the updates of each parameter, by id."""
    for i, param in enumerate(trainable_params(group)):
        if count := updates[id(param)]:
            state = optimizer.state[param]
            if optimizer.counts:
                state["step"] = param.new_tensor(steps_of(optimizer, param) + count, dtype=np.float32)
            for slot, name in optimizer.slots_of(param).items():
                if slot in sums:
                    state[name] = param.new_tensor(sums[slot][i], dtype=sums[slot][i].dtype)


# Optimizers of the user's own -----------------------------------------------------------------------------------------


class KeptState:
    """What an optimizer of the user's own keeps: the arrays of its tensors and numbers, and all else, which is fixed.

    `layout` has the containers, and for each leaf "tensor", "number" or the fixed value. The containers are `state`,
    by the names of parameters, and `groups`, the options that change.
    """

    def __init__(self, arrays: Sequence[Any], layout: tuple[tree.Structure, tuple[Any, ...]]) -> None:
        self.arrays, self.layout = list(arrays), layout

    def filled(self, values: Iterable[Any]) -> dict[str, Any]:
        """Return the containers with these values in the place of tensors and numbers."""
        structure, kinds = self.layout
        rest = iter(values)
        leaves = [next(rest) if kind in _ARRAYS else kind.value for kind in kinds]
        containers: dict[str, Any] = tree.unflatten(structure, leaves)
        return containers

    @property
    def kinds(self) -> list[str]:
        """For each array, "tensor" or "number"."""
        return [kind for kind in self.layout[1] if kind in _ARRAYS]

    def tensors(self) -> Iterator[tuple[str, str, Any]]:
        """Yield the arrays of the tensors of parameters: the parameter's name, the key in its state, and the array."""
        structure, kinds = self.layout
        rest = iter(self.arrays)
        for path, kind in zip(structure.paths(), kinds, strict=True):
            array = next(rest) if kind in _ARRAYS else None
            if kind == _TENSOR and len(path) == 3 and path[0] == _STATE:
                yield path[1], path[2], array


class _Constant:
    """A leaf that is no tensor and no number: the graph is specialised to it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


_TENSOR, _NUMBER, _STATE, _GROUPS = "tensor", "number", "state", "groups"
_ARRAYS = (_TENSOR, _NUMBER)
tree.register(KeptState, lambda kept: (kept.arrays, kept.layout), lambda layout, arrays: KeptState(arrays, layout))


def kept_state(optimizer: Any, names: Names, numbers: Numbers = (), trace: StepTrace | None = None) -> KeptState:
    """Return what an optimizer of the user's own keeps now; in a `trace`, its symbols.

    Raises ControlFlowError for a value that a graph cannot keep.
    """
    kept = [(key, dict(each) if isinstance(each, dict) else each) for key, each in optimizer.state.items()]
    state = {names.get(id(key), key): each for key, each in kept if not isinstance(each, dict) or each}
    groups = zip(optimizer.param_groups, numbers, strict=False)
    options = [{name: group[name] for name in sorted(some) if name in group} for group, some in groups]
    leaves, structure = tree.flatten_as_inserted({_STATE: state, _GROUPS: options})
    kinds = [_kind(optimizer, leaf, trace) for leaf in leaves]
    arrays = [_array(leaf) for leaf, kind in zip(leaves, kinds, strict=True) if kind in _ARRAYS]
    return KeptState(arrays, (structure, tuple(kinds)))


def _kind(optimizer: Any, leaf: Any, trace: StepTrace | None) -> Any:
    rule = ""
    if isinstance(leaf, Symbol) and trace is not None and trace.is_shared(leaf):
        rule = "keeps a parameter or a view of one, which changes with it; keep a clone()"
    elif (promotion.is_scalar(leaf) and not isinstance(leaf, (bool, np.bool_))) or getattr(leaf, "weak", False):
        return _NUMBER
    elif isinstance(leaf, (Symbol, *capture.tensors)):
        return _TENSOR
    elif not isinstance(leaf, (bool, np.bool_, str, np.dtype)):
        rule = f"keeps a {type(leaf).__name__}, which no graph can; keep tensors and numbers"
    if rule:
        raise ControlFlowError(locate(f"{type(optimizer).__name__} {rule}, or run it in mode dynamic"))
    return _Constant(leaf)


def _array(leaf: Any) -> Any:
    if isinstance(leaf, Symbol):  # another one, since what converted code has changed is put back behind the trace
        return Symbol(leaf.builder, leaf.node, leaf.weak)
    return np.asarray(leaf.detach().numpy() if hasattr(leaf, "detach") else leaf)


def keep_state(optimizer: Any, kept: KeptState, tensors: Mapping[str, Any]) -> None:
    """Store in an optimizer of the user's own what it keeps; `tensors` has its parameters by name."""
    like = optimizer.param_groups[0]["params"][0]
    values = [
        like.new_tensor(array, dtype=array.dtype) if kind == _TENSOR else np.asarray(array).item()
        for array, kind in zip(kept.arrays, kept.kinds, strict=True)
    ]
    containers = kept.filled(values)
    optimizer.state.clear()
    optimizer.state.update({tensors.get(name, name): state for name, state in containers[_STATE].items()})
    for group, options in zip(optimizer.param_groups, containers[_GROUPS], strict=False):
        group.update(options)


class WrittenOptimizer:
    """An optimizer of the user's own in a trace: between `begin` and `end` it keeps symbols.

    `numbers` are the options of its groups that change; `kept` adds those that the step has changed.
    """

    def __init__(self, optimizer: Any, numbers: Numbers, trace: StepTrace) -> None:
        self._optimizer, self._numbers, self._trace = optimizer, numbers, trace
        self._state = optimizer.state
        self._groups = [dict(group) for group in optimizer.param_groups]
        self._options = [_leaves(group, ("params",)) for group in optimizer.param_groups]
        self._attributes = _leaves(vars(optimizer), (_STATE, "param_groups"))

    def begin(self, kept: KeptState) -> None:
        """Let the optimizer keep symbols for these values."""
        values = [
            Symbol(value.builder, value.node, weak=True)
            if kind == _NUMBER
            else self._trace.own(self._trace.variable(value))
            for value, kind in zip(kept.arrays, kept.kinds, strict=True)
        ]
        containers = kept.filled(values)
        symbols = self._trace.symbols
        entries = [(symbols.get(name, name), _note_containers(state)) for name, state in containers[_STATE].items()]
        self._optimizer.state = _StateBySymbol(self._trace, entries)
        for group, options in zip(self._optimizer.param_groups, containers[_GROUPS], strict=False):
            journal(Contents(group))
            group.update(options)

    def kept(self) -> KeptState:
        """Return what the optimizer keeps at the end of the step, and note the options that the step has changed.

        Raises ControlFlowError where the step has changed another attribute of the optimizer, or a list in a group.
        """
        optimizer = self._optimizer
        places = _differences(self._attributes, _leaves(vars(optimizer), (_STATE, "param_groups")))
        pairs = zip(self._numbers, optimizer.param_groups, self._groups, self._options, strict=True)
        for i, (numbers, group, before, options) in enumerate(pairs):
            differing = _differences(options, _leaves(group, ("params",)))
            numbers |= {name for name in differing if group.get(name) is not before.get(name)}
            places += [f"param_groups[{i}][{name!r}]" for name in differing if group.get(name) is before.get(name)]
        if places:
            kind = type(optimizer).__name__
            raise ControlFlowError(
                locate(
                    f"the step changes {kind}.{places[0]}, and its Python code runs once; keep what changes in "
                    f"{kind}.state, or run it in mode dynamic"
                )
            )
        names = {id(symbol): name for name, symbol in self._trace.symbols.items()}
        return kept_state(optimizer, names, self._numbers, self._trace)

    def end(self) -> None:
        """Let the optimizer keep what it kept before `begin`."""
        self._optimizer.state = self._state
        for group, before in zip(self._optimizer.param_groups, self._groups, strict=False):
            group.clear()
            group.update(before)


def _leaves(values: Mapping[str, Any], without: Sequence[str]) -> dict[str, list[Any]]:
    """Return the leaves of each value by its name, without some."""
    return {name: tree.leaves(value) for name, value in values.items() if name not in without}


def _differences(before: Mapping[str, list[Any]], now: Mapping[str, list[Any]]) -> list[str]:
    """Return the names whose leaves are others now."""
    return [name for name in now if name not in before or [*map(id, now[name])] != [*map(id, before[name])]]


def _note_containers(state: Any) -> Any:
    """Return a container of a trace, which nobody outside has: converted code may change it."""
    for inner in state.values() if isinstance(state, dict) else state if isinstance(state, list) else ():
        _note_containers(inner)
    return note_new(state)


class _FirstState(dict[Any, Any]):
    """The state of a parameter in the trace that makes it.

    An array of constants that is put in is read in each call, as it is behind the first step: so the graph of the first
    step computes what that of a later one does, and nothing ahead.
    """

    def __init__(self, trace: StepTrace) -> None:
        super().__init__()
        self._trace = trace

    def __setitem__(self, key: Any, value: Any) -> None:
        constant = known_value(value) if isinstance(value, Symbol) and value.builder is current() else None
        if constant is not None and constant.size > 1:
            read = value.builder.read(capture.Fresh(lambda: constant))
            value.node = of_kind(Symbol(value.builder, read), is_tensor=True).node
            self._trace.own(value)
        super().__setitem__(key, value)


class _StateBySymbol(MutableMapping[Any, Any]):
    """The `state` of an optimizer in a trace: a symbol is a key by its identity, as a tensor is; default are dicts."""

    def __init__(self, trace: StepTrace, entries: Iterable[tuple[Any, Any]]) -> None:
        self._trace = trace
        self._entries = {self._key(key): (key, value) for key, value in entries}

    @staticmethod
    def _key(key: Any) -> Any:
        return (Symbol, id(key)) if isinstance(key, Symbol) else key

    def __getitem__(self, key: Any) -> Any:
        own = self._key(key)
        if own not in self._entries:
            self._entries[own] = key, note_new(_FirstState(self._trace))
        return self._entries[own][1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._entries[self._key(key)] = key, value

    def __delitem__(self, key: Any) -> None:
        del self._entries[self._key(key)]

    def __contains__(self, key: object) -> bool:
        return self._key(key) in self._entries

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the state of a key, the default where there is none."""
        return self._entries.get(self._key(key), (key, default))[1]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
