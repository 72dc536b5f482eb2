"""The table of translations: what each op of ONNX is in the op library.

A translation is a function over ops. Its parameters say all that a reader of models has to know:

    x, weight=None             an input, and one that may be missing
    shape: Sizes               an input that decides about shapes: its numbers, which must be known when it runs
    limit: Decider             the same as an array, which has a dtype
    *, axis: int = -1          an attribute, of that type and with ONNX's default
    group: Count, strides: Counts    numbers of 1 or more
    mode: Literal["DCR", "CRD"]      one of these texts
    axes: Sizes | None = None  either, as the opset has it: an attribute at first, an input later
    outputs: int               how many outputs are asked for, where ONNX lets a model choose

A model of an older or newer opset than the table was written for is read where its op is the same.

Sizes, as a model computes with them: vectors of ints, some of which may be symbolic.

An exported model takes the shape of a value apart and makes other shapes of it. Where all sizes are numbers, that is
arithmetic on arrays. A symbolic one has no value, so an array of objects holds it, and `ARITHMETIC` has what models do
with such: the result is sizes again. Any other op gets them as a tensor.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from graphs import dims, ops
from graphs.dims import Dim
from graphs.errors import ArtifactError, ControlFlowError

Sizes = Sequence[int | Dim]
Objects = np.ndarray[Any, np.dtype[Any]]


class Decider(Objects):
    """Marks an input of a translation that decides shapes: it is an array, of objects if it holds symbolic sizes."""


def is_symbolic(value: Any) -> bool:
    """Whether a value is an object array, which holds symbolic sizes."""
    return isinstance(value, np.ndarray) and value.dtype == object


def are_sizes(values: Sequence[Any]) -> bool:
    """Whether all values are arrays, and some hold symbolic sizes."""
    return any(map(is_symbolic, values)) and all(isinstance(value, np.ndarray) for value in values)


def array_of(sizes: Any) -> Objects:
    """Sizes as an array: of objects where one is symbolic, of int64 otherwise."""
    held = np.asarray(sizes, object)
    return held if any(isinstance(size, Dim) for size in held.flat) else held.astype(np.int64)


def deciding_array(value: Any) -> Objects:
    """An input that decides shapes, as an array. Raises ControlFlowError for a symbol, whose values are unknown."""
    try:
        return np.asarray(value)
    except ControlFlowError:
        raise ControlFlowError(
            "a size or an axis is computed from values, which are unknown while a graph is traced; give the input that "
            "it comes from as Python's numbers, which a graph knows, or run the model in the dynamic engine"
        ) from None


def numbers(value: Any) -> list[Any]:
    """The elements of an input that decides shapes. Raises ControlFlowError for a symbol, whose values are unknown."""
    return deciding_array(value).reshape(-1).tolist()


def whole(sizes: Sizes) -> tuple[int, ...]:
    """Sizes that must be numbers, such as axes. Raises ControlFlowError for a symbolic one."""
    return tuple(map(operator.index, sizes))


def tensor(sizes: Objects) -> Any:
    """Sizes as an int64 tensor of the graph that is traced."""
    zero = np.zeros((), np.int64)
    return ops.reshape(ops.stack([ops.add(zero, size) for size in sizes.flat]), sizes.shape)


def _cut(x: Objects, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Objects:
    key = slices(x.ndim, numbers(starts), numbers(ends), _as_list(axes), _as_list(steps))
    return x[key]


def _as_list(value: Any) -> list[Any] | None:
    return None if value is None else numbers(value)


def slices(ndim: int, starts: Sizes, ends: Sizes, axes: Sizes | None, steps: Sizes | None) -> tuple[slice, ...]:
    """The key for ONNX's Slice, where a position beyond the axis, on either side, means its end."""
    key = [slice(None)] * ndim
    count = len(starts)
    for start, end, axis, step in zip(starts, ends, axes or range(count), steps or [1] * count, strict=True):
        backwards = isinstance(step, int) and step < 0
        whole = _is_far(start, 1) or (isinstance(start, int) and start == -1) if backwards else _is_far(start, -1)
        stop = None if _is_far(end, -1 if backwards else 1) else end
        key[int(axis)] = slice(None if whole else start, stop, None if step == 1 else step)
    return tuple(key)


def _is_far(position: int | Dim, side: int) -> bool:
    """Whether a position is beyond any axis: exporters write the largest integer, or 10 ** 9, for the end."""
    return isinstance(position, int) and position * side >= _FAR


_FAR = 10**9

# Arithmetic on sizes by the op's name; a function may return NotImplemented. Attributes are those of the op.
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.floor_divide,  # sizes are not negative
    "Mod": np.remainder,
    "Max": np.frompyfunc(dims.maximum, 2, 1),
    "Min": np.frompyfunc(dims.minimum, 2, 1),
    "Identity": lambda x: x,
    "Cast": lambda x, to, **_: x if to.kind == "i" else NotImplemented,
    "Gather": lambda x, indices, axis=0: np.take(x, indices, axis=axis),
    "Slice": _cut,
    "Concat": lambda *parts, axis: np.concatenate(parts, axis=axis),
    "Squeeze": lambda x, axes=None: np.squeeze(x, None if axes is None else tuple(numbers(axes))),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(numbers(axes))),
    "Reshape": lambda x, shape, allowzero=False: np.reshape(x, numbers(shape)),
    "ReduceProd": lambda x, axes=None, keepdims=True, noop_with_empty_axes=False: np.prod(x, keepdims=keepdims),
}


Translation = Callable[..., Any]
Body = Callable[..., tuple[Any, ...]]  # a graph among the attributes, called on the values of its inputs
Constant = np.ndarray[Any, Any]  # a tensor among the attributes
Floats = list[float]
Texts = list[str]

OLDEST, NEWEST = 13, 28  # opsets


class Least(NamedTuple):
    """The smallest number that an attribute may be or contain."""

    number: int


Count = Annotated[int, Least(1)]
Counts = Annotated[Sequence[int], Least(1)]
AutoPad = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


class AttributeKind(NamedTuple):
    """The allowed values of an attribute.

    kind      its type in Python
    least     the smallest number that it may be or contain, or None
    choices   the texts that it may be, empty for any text
    """

    kind: Any
    least: int | None = None
    choices: tuple[str, ...] = ()

    def refusal(self, value: Any) -> str:
        """Why the attribute may not have this value; empty if it may."""
        if self.choices and value not in self.choices:
            return f"is one of {', '.join(self.choices)}"
        if self.least is not None and min([value] if isinstance(value, int) else value, default=1) < self.least:
            return f"has numbers of {self.least} or more"
        return ""


class TranslationRule(NamedTuple):
    """A translation, as the table holds it.

    function     the translation
    attributes   what each attribute that it takes is, by name
    deciding     what makes of the inputs that decide about shapes what it takes, by their numbers
    counts       whether it wants to know how many outputs are asked for
    most         how many inputs it takes
    since        the first version of the op that it tells, or None: that of `OLDEST`
    """

    function: Translation
    attributes: dict[str, AttributeKind]
    deciding: Mapping[int, Callable[[Any], Any]]
    counts: bool
    most: float
    since: int | None


TABLE: dict[str, TranslationRule] = {}
_DECIDING: dict[Any, Callable[[Any], Any]] = {Sizes: numbers, Decider: deciding_array}


def translates(*names: str, since: int | None = None) -> Callable[[Translation], Translation]:
    """Register a function as the translation of these ops, from version `since` on."""

    def enter(function: Translation) -> Translation:
        TABLE.update(dict.fromkeys(names, _entry(function, since)))
        return function

    return enter


def _entry(function: Translation, since: int | None) -> TranslationRule:
    parameters = list(inspect.signature(function).parameters.values())
    hints = typing.get_type_hints(function, include_extras=True) if inspect.isfunction(function) else {}
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    attributes = {
        p.name: _attribute(_non_optional(hints[p.name]))
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and _is_typed(hints.get(p.name)) and p.name != "outputs"
    }
    kinds = [_non_optional(hints.get(p.name)) for p in positional]
    deciding = {i: _DECIDING[kind] for i, kind in enumerate(kinds) if kind in _DECIDING}
    most = len(positional) if all(p.kind != p.VAR_POSITIONAL for p in parameters) else math.inf
    return TranslationRule(function, attributes, deciding, any(p.name == "outputs" for p in parameters), most, since)


def _non_optional(hint: Any) -> Any:
    """The type T of `T | None`; other types unchanged."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def _attribute(hint: Any) -> AttributeKind:
    origin = typing.get_origin(hint)
    if origin is Literal:
        return AttributeKind(str, choices=typing.get_args(hint))
    if origin is not Annotated:
        return AttributeKind(hint)
    kind, least = typing.get_args(hint)
    return AttributeKind(Sizes if kind == Sequence[int] else kind, least.number)


def _is_typed(hint: Any) -> bool:
    return hint not in (None, Any, Decider)


# Form -----------------------------------------------------------------------------------------------------------------


MEND = "correct the model, or export it again"


def name_of(node: NodeProto) -> str:
    """The name of an op for messages, with its domain if that is not ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def domain_of(entry: Any) -> str:
    """The domain of a node, function or opset; empty for ONNX's own, however it is written."""
    return "" if entry.domain == "ai.onnx" else entry.domain


def label_of(node: NodeProto, number: int) -> str:
    """The name of a node for messages."""
    return f"{name_of(node)} (node {node.name or number}, domain {node.domain or 'ai.onnx'})"


def nodes_of(body: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """The nodes of a graph, and of graphs in their attributes."""
    for node in body.node:
        yield node
        for attribute in node.attribute:
            for graph in graphs_of(attribute):
                yield from nodes_of(graph)


def graphs_of(attribute: AttributeProto) -> list[GraphProto]:
    """The graphs in an attribute."""
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def bodies_of(proto: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """The graphs and functions of a model, and the graphs in their nodes."""
    bodies = [proto.graph, *proto.functions]
    while bodies:
        body = bodies.pop()
        yield body
        bodies += [graph for node in body.node for attribute in node.attribute for graph in graphs_of(attribute)]


Types = dict[str, str]  # of values by name, as ONNX writes them; empty where it is not known


@functools.cache
def type_of(kind: int) -> str:
    """ONNX's text for the type of tensors with this element type, such as "tensor(float)"; empty if unknown."""
    names = {number: name for name, number in TensorProto.DataType.items()}
    return f"tensor({names[kind].lower()})" if kind in names and kind != TensorProto.UNDEFINED else ""


def check_types(node: NodeProto, schema: onnx.defs.OpSchema, label: str, types: Types) -> None:
    """Raise ArtifactError for operands of types that the op does not take; add the types of its results to `types`."""
    allowed = {entry.type_param_str: entry.allowed_type_strs for entry in schema.type_constraints}
    operands = [*schema.inputs, *[*schema.inputs[-1:]] * len(node.input)]
    results = [*schema.outputs, *[*schema.outputs[-1:]] * len(node.output)]
    bound: Types = {}
    for entry, name in zip(operands, node.input, strict=False):
        kind = types.get(name, "")
        if not kind or not entry.is_homogeneous:
            continue
        if kind not in allowed.get(entry.type_str, [entry.type_str]):
            raise ArtifactError(f"{label}: its input {name!r} is a {kind}, which it does not take; {MEND}")
        if bound.setdefault(entry.type_str, kind) != kind:
            raise ArtifactError(f"{label}: takes inputs of one type, not {bound[entry.type_str]} and {kind}; {MEND}")
    for entry, name in zip(results, node.output, strict=False):
        choices = allowed.get(entry.type_str, [entry.type_str])
        own = bound.get(entry.type_str, "") if entry.is_homogeneous else ""
        types[name] = choices[0] if len(choices) == 1 else own


def check_names(node: NodeProto, label: str, graph: GraphProto, made: set[str], outer: Mapping[str, str]) -> None:
    """Raise ArtifactError for a node that reads a missing value, or makes an existing one."""
    for name in filter(None, node.input):
        if name not in made and name not in outer:
            later = any(name in other.output for other in graph.node)
            why = "a node after it makes, or itself" if later else "nothing makes"
            raise ArtifactError(f"{label}: reads {name!r}, which {why}; {MEND}")
    outputs = [*filter(None, node.output)]
    again = [name for number, name in enumerate(outputs) if name in made or name in outputs[:number]]
    if again:
        raise ArtifactError(f"{label}: makes {again[0]!r}, which is made already; {MEND}")


def check_form(node: NodeProto, schema: onnx.defs.OpSchema, label: str) -> None:
    """Raise ArtifactError for a wrong number of inputs or outputs, and for a missing required attribute."""
    for kind, count, least, most in (
        ("input", len(node.input), schema.min_input, schema.max_input),
        ("output", len(node.output), schema.min_output, schema.max_output),
    ):
        if not least <= count <= most:
            limits = f"{least}" if least == most else f"{least} or more" if most > 1000 else f"{least} to {most}"
            raise ArtifactError(f"{label}: has {count} {kind}s, and takes {limits}; {MEND}")
    for number, (formal, name) in enumerate(zip(schema.inputs, node.input, strict=False)):
        if not name and formal.option == onnx.defs.OpSchema.FormalParameterOption.Single:
            raise ArtifactError(f"{label}: its input {number}, {formal.name}, is left out; {MEND}")
    names = [attribute.name for attribute in node.attribute]
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in names:
            raise ArtifactError(f"{label}: the attribute {name} is missing; {MEND}")
    if len(names) > len(set(names)):
        raise ArtifactError(f"{label}: has an attribute twice; {MEND}")
