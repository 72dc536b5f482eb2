"""Generated functions that take arguments apart, check them, run, and build the result, for known containers.

    def call(room, args):
        try:
            if len(args) != 2: return NotImplemented
            p0, x2, = args
            if type(p0) is not dict or len(p0) != 2: return NotImplemented
            x0 = p0['b']
            x1 = p0['w']
        except KeyError: return NotImplemented
        if not (type(x0) is type(x1) is type(x2) is ndarray): return NotImplemented
        if (x0.dtype, x1.dtype, x2.dtype, ) != dtypes: return NotImplemented
        binding = room.bindings.get((x0.shape, x1.shape, x2.shape, ))
        if binding is None: return NotImplemented
        run = binding.run
        v0, v1, = run(x0, x1, x2)
        return (v0, {'b': v1, }, )

General flattening inspects every container that it meets, which takes a few times as long as small kernels do. Here
the containers are known. Only None, plain dicts and lists, tuples and named tuples are supported: for all others the
functions return NotImplemented, and the caller flattens the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphs import tree
from graphs.dims import Shape
from graphs.spec import TensorSpec
from static.codegen.binding import Binding
from static.trace.tracing import is_traced, static_key

RunArrays = Callable[..., tuple[Any, ...]]
Reader = Callable[[Mapping[Any, Any], tuple[Any, ...]], Any]
_PLAIN = (dict, list, tuple)
_KEYS = (str, int)
_REFUSE = "return NotImplemented"


class Room:
    """The memory of an executable that one call at a time uses: bindings by shapes, and functions for fixed shapes.

    Where there is one combination of shapes, `run` takes arrays that have been checked. `direct`, if there is one,
    checks them itself.
    """

    __slots__ = ("bindings", "direct", "run")

    def __init__(self) -> None:
        self.bindings: dict[tuple[Shape, ...], Binding] = {}
        self.run: RunArrays | None = None
        self.direct: Callable[..., Any] | None = None


def caller(
    inputs: tree.Structure, outputs: tree.Structure, specs: Sequence[TensorSpec], *, fixed: bool, direct: bool = False
) -> Callable[[Room, tuple[Any, ...]], Any]:
    """Return `call(room, args)`, which runs the binding of the arguments' shapes; NotImplemented if in doubt.

    `inputs` is the structure of `args`, a tuple; each leaf must be an array of the dtype of its spec. Where shapes are
    `fixed` it must have the shape of its spec too, and `room.run` runs. A NumPy scalar counts as an array where the
    spec has no axes. With `direct`, `room.direct` is tried before anything is checked here.
    """
    numbered = _number_leaves(inputs)
    if not _is_plain(numbered) or inputs.num_leaves != len(specs):
        return lambda *_: NotImplemented
    leaves = [f"x{i}" for i in range(len(specs))]
    types: dict[str, type] = {}
    lines = [
        *_read(numbered, types, ordered=False),
        *(_directly(leaves, outputs) if direct else ()),
        *_scalars([x for x, spec in zip(leaves, specs, strict=True) if not spec.shape]),
        *_type_check(dict.fromkeys(leaves, np.ndarray)),
        f"if ({_comma_separated(f'{x}.dtype' for x in leaves)}) != dtypes: {_REFUSE}",
        *(_of_shapes(dict(zip(leaves, specs, strict=True))) if fixed else _lookup_statements(leaves)),
        *_putting_together(f"run({', '.join(leaves)})", outputs),
    ]
    dtypes = tuple([spec.dtype for spec in specs])
    call: Callable[[Room, tuple[Any, ...]], Any]
    call = _function("room, args", lines, dtypes=dtypes, outputs=outputs, **types)
    return call


def _directly(leaves: Sequence[str], outputs: tree.Structure) -> Iterator[str]:
    """Yield statements that pass these variables to `room.direct`, which returns False where they do not fit."""
    yield "direct = room.direct"
    yield f"made = direct is not None and direct({', '.join(leaves)})"
    yield "if made:"
    yield from (f"    {line}" for line in _putting_together("made", outputs))


def _scalars(leaves: Sequence[str]) -> Iterator[str]:
    """Yield statements that make arrays of NumPy scalars, which losses and learning rates often are."""
    for x in leaves:
        yield f"if isinstance({x}, generic): {x} = asarray({x})"


def _lookup_statements(leaves: Sequence[str]) -> Iterator[str]:
    """Yield statements that look up the binding for the shapes of these variables."""
    yield f"binding = room.bindings.get(({_comma_separated(f'{x}.shape' for x in leaves)}))"
    yield f"if binding is None: {_REFUSE}"
    yield "run = binding.run"


def _of_shapes(specs: Mapping[str, TensorSpec]) -> Iterator[str]:
    """Yield statements that refuse variables of other shapes, which is quicker than a look-up, and take `room.run`."""
    if specs:
        yield f"if {' or '.join(f'{x}.shape != {spec.shape}' for x, spec in specs.items())}: {_REFUSE}"
    yield "run = room.run"


def maker(outputs: tree.Structure) -> Callable[[Sequence[Any]], Any]:
    """Return a function that puts the leaves of a result into containers of this structure."""
    lines = _putting_together("leaves", outputs)
    make: Callable[[Sequence[Any]], Any] = _function("leaves", lines, outputs=outputs)
    return make


def finder(leaves: Sequence[Any], structure: tree.Structure, number: int) -> Reader | None:
    """Return `find(entries, args)` for arguments laid out like these: their entry by `kind`, and their arrays.

    `find` returns NotImplemented where there is no entry, and where containers, the order of a dict's keys, or the type
    of a leaf differ. Returns None when no such function can be made.
    """
    numbered = _number_leaves(structure)
    traced = [is_traced(leaf) for leaf in leaves]
    are_arrays = [type(leaf) is np.ndarray or isinstance(leaf, np.generic) for leaf in leaves]
    if not _is_plain(numbered) or traced != are_arrays:
        return None
    kinds = {f"x{i}": type(leaf) for i, leaf in enumerate(leaves)}
    arrays = [x for x, is_array in zip(kinds, traced, strict=True) if is_array]
    parts = [str(number), *(f"{x}.shape" for x in arrays), *(f"{x}.dtype" for x in arrays)]
    parts += [f"static_key({x})" for x in kinds if x not in arrays]
    types = {f"type_{x}": leaf_type for x, leaf_type in kinds.items()}
    lines = [
        *_read(numbered, types, ordered=True),
        *_type_check(kinds),
        *(f"{x} = asarray({x})" for x in arrays if kinds[x] is not np.ndarray),
        f"entry = entries.get(({_comma_separated(parts)}))",
        f"if entry is None: {_REFUSE}",
        f"return entry, ({_comma_separated(arrays)})",
    ]
    find: Reader = _function("entries, args", lines, **types)
    return find


def kind(leaves: Sequence[Any], number: int) -> Hashable:
    """Return the key that a `finder` of this number looks up: shapes, dtypes, and keys of static values."""
    arrays = [np.asarray(leaf) for leaf in leaves if is_traced(leaf)]
    statics = [static_key(leaf) for leaf in leaves if not is_traced(leaf)]
    return number, *[a.shape for a in arrays], *[a.dtype for a in arrays], *statics


def _function(parameters: str, lines: Sequence[str], **names: Any) -> Any:
    helpers = {"ndarray": np.ndarray, "generic": np.generic, "asarray": np.asarray}
    helpers |= {"static_key": static_key, "unflatten": tree.unflatten}
    namespace: dict[str, Any] = {**helpers, **names}
    source = f"def made({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    exec(source, namespace)  # noqa: S102  (made of structures: keys are literals)
    return namespace["made"]


def _number_leaves(structure: tree.Structure) -> Any:
    return tree.unflatten(structure, list(range(structure.num_leaves)))


def _is_plain(value: Any, named: bool = True) -> bool:
    """Whether a container of leaf numbers holds only plain containers, or named tuples too where `named`."""
    if type(value) is int or value is None:
        return True
    if type(value) is dict:
        return all(type(key) in _KEYS for key in value) and all(_is_plain(part, named) for part in value.values())
    is_plain_kind = type(value) in _PLAIN or (named and getattr(type(value), "__iter__", None) is tuple.__iter__)
    return is_plain_kind and all(_is_plain(part, named) for part in value)


def _read(container: Any, types: dict[str, type], *, ordered: bool) -> Iterator[str]:
    """Yield statements that put the leaves of `args` into x0, x1, ..., or refuse them.

    `types` collects the names used.
    """
    yield "try:"
    yield from (f"    {line}" for line in _reading("args", container, types, ordered))
    yield f"except KeyError: {_REFUSE}"


def _reading(name: str, value: Any, types: dict[str, type], ordered: bool) -> Iterator[str]:
    """Yield statements that put the leaves of a container into x0, x1, ..., or refuse it; `name` is its variable."""
    if value is None:
        yield f"if {name} is not None: {_REFUSE}"
        return
    kind = types[f"type_{name}"] = type(value)
    keys = list(value) if kind is dict else range(len(value))
    wrong = [f"type({name}) is not type_{name}"] if name != "args" else []
    by_order = ordered and kind is dict
    wrong.append(f"[*{name}] != {keys}" if by_order else f"len({name}) != {len(value)}")
    yield f"if {' or '.join(wrong)}: {_REFUSE}"
    names = {key: f"x{value[key]}" if type(value[key]) is int else f"{name}_{i}" for i, key in enumerate(keys)}
    if kind is dict and not ordered:
        yield from (f"{names[key]} = {name}[{key!r}]" for key in keys)
    elif names:
        yield f"{_comma_separated(names.values())} = {name}{'.values()' if by_order else ''}"
    for key in keys:
        if type(value[key]) is not int:
            yield from _reading(names[key], value[key], types, ordered)


def _type_check(kinds: Mapping[str, type]) -> Iterator[str]:
    """Yield a statement that refuses variables of other types than these."""
    arrays = [x for x, kind in kinds.items() if kind is np.ndarray]
    right = [f"{' is '.join(f'type({x})' for x in arrays)} is ndarray"] if arrays else []
    right += [f"type({x}) is type_{x}" for x in kinds if x not in arrays]
    if right:
        yield f"if not ({' and '.join(right)}): {_REFUSE}"


def _putting_together(leaves: str, outputs: tree.Structure) -> list[str]:
    made = _number_leaves(outputs)
    if not _is_plain(made, named=False):
        return [f"return unflatten(outputs, list({leaves}))"]
    targets = _comma_separated(f"v{i}" for i in range(outputs.num_leaves)) or "()"
    return [f"{targets} = {leaves}", f"return {_container_expression(made)}"]


def _container_expression(value: Any) -> str:
    """Return the expression that makes a container of v0, v1, ..., given the container of their numbers."""
    if type(value) is dict:
        return f"{{{_comma_separated(f'{key!r}: {_container_expression(part)}' for key, part in value.items())}}}"
    if type(value) is list:
        return f"[{_comma_separated(map(_container_expression, value))}]"
    if type(value) is tuple:
        return f"({_comma_separated(map(_container_expression, value))})"
    return "None" if value is None else f"v{value}"


def _comma_separated(parts: Any) -> str:
    return "".join(f"{part}, " for part in parts)
