"""How arguments and results are laid out, as code: a function that reads, checks, runs and puts together at once.

    def call(bindings, args):
        try:
            if len(args) != 2: return NotImplemented
            p0, x2 = args
            if type(p0) is not dict or len(p0) != 2: return NotImplemented
            x0 = p0['b']
            x1 = p0['w']
        except KeyError: return NotImplemented
        if not (type(x0) is type(x1) is type(x2) is ndarray): return NotImplemented
        if (x0.dtype, x1.dtype, x2.dtype) != dtypes: return NotImplemented
        binding = bindings.get((x0.shape, x1.shape, x2.shape))
        if binding is None: return NotImplemented
        v0, v1, = binding.run(x0, x1, x2)
        return (v0, {'b': v1, })

A general flattening looks at every container it meets; where the containers are known it takes a few times as long as
small kernels do. Only plain dicts, lists and tuples are known here, and arrays that are exactly what was compiled for:
all else is NotImplemented, for the caller to look at closer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphs import tree

Call = Callable[[Mapping[Any, Any], tuple[Any, ...]], Any]
_PLAIN = (dict, list, tuple)
_KEYS = (str, int)
_REFUSE = "return NotImplemented"


def caller(inputs: tree.Structure, outputs: tree.Structure, dtypes: Sequence[np.dtype[Any]]) -> Call:
    """A function `call(bindings, args)` that runs the binding of the arguments' shapes; NotImplemented if in doubt.

    `inputs` is the structure of `args`, a tuple; a leaf of it must be an array of one of `dtypes`, in their order.
    """
    given, made = _numbered(inputs), _numbered(outputs)
    if not _is_plain(given) or inputs.num_leaves != len(dtypes):
        return lambda *_: NotImplemented
    leaves = [f"x{i}" for i in range(len(dtypes))]
    lines = ["try:", *(f"    {line}" for line in _reading("args", given)), f"except KeyError: {_REFUSE}"]
    if leaves:
        lines.append(f"if not ({' is '.join(f'type({x})' for x in leaves)} is ndarray): {_REFUSE}")
    lines += [
        f"if ({_listed(f'{x}.dtype' for x in leaves)}) != dtypes: {_REFUSE}",
        f"binding = bindings.get(({_listed(f'{x}.shape' for x in leaves)}))",
        f"if binding is None: {_REFUSE}",
        *_putting_together(f"binding.run({', '.join(leaves)})", made, outputs.num_leaves),
    ]
    names: dict[str, Any] = {
        "ndarray": np.ndarray,
        "dtypes": tuple(dtypes),
        "unflatten": tree.unflatten,
        "outputs": outputs,
    }
    source = "def call(bindings, args):\n" + "".join(f"    {line}\n" for line in lines)
    exec(source, names)  # noqa: S102  (made of the structures: keys are literals)
    call: Call = names["call"]
    return call


def _numbered(structure: tree.Structure) -> Any:
    return tree.unflatten(structure, list(range(structure.num_leaves)))


def _is_plain(value: Any) -> bool:
    """Whether a container of leaf numbers, and all in it, is of a kind that is known here."""
    if type(value) is int:
        return True
    if type(value) is dict:
        return all(type(key) in _KEYS for key in value) and all(map(_is_plain, value.values()))
    return type(value) in _PLAIN and all(map(_is_plain, value))


def _reading(name: str, value: Any) -> Iterator[str]:
    """Statements that put the leaves of a container into x0, x1, ..., or refuse it; `name` holds it."""
    kind = type(value)
    wrong = [f"type({name}) is not {kind.__name__}"] if name != "args" else []
    yield f"if {' or '.join([*wrong, f'len({name}) != {len(value)}'])}: {_REFUSE}"
    inside = {key: value[key] for key in (value if kind is dict else range(len(value)))}
    names = {key: f"x{part}" if type(part) is int else f"{name}_{i}" for i, (key, part) in enumerate(inside.items())}
    if kind is dict:
        yield from (f"{names[key]} = {name}[{key!r}]" for key in inside)
    elif inside:
        yield f"{_listed(names.values())} = {name}"
    for key, part in inside.items():
        if type(part) is not int:
            yield from _reading(names[key], part)


def _putting_together(outputs: str, value: Any, count: int) -> list[str]:
    if not _is_plain(value):
        return [f"return unflatten(outputs, list({outputs}))"]
    found = _listed(f"v{i}" for i in range(count)) or "()"
    return [f"{found} = {outputs}", f"return {_written(value)}"]


def _written(value: Any) -> str:
    """The expression that makes a container of v0, v1, ..., whose numbers it holds."""
    if type(value) is dict:
        return f"{{{_listed(f'{key!r}: {_written(part)}' for key, part in value.items())}}}"
    if type(value) is list:
        return f"[{_listed(map(_written, value))}]"
    return f"({_listed(map(_written, value))})" if type(value) is tuple else f"v{value}"


def _listed(parts: Any) -> str:
    return "".join(f"{part}, " for part in parts)
