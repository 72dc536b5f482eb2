"""The writer of a graph as an ONNX graph (nodes, constants, sizes), and the table of rules for each op.

A rule takes the writer, the node and the names of its inputs, and returns the name of the result (a list of names for
an op with several results). Calling the writer with the name of an ONNX op adds a node.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from graphs import dims
from graphs.dims import Atom, Dim, Size
from graphs.errors import GraphError
from graphs.ir import Graph, Node
from graphs.op import RuleTable
from graphs.spec import TensorSpec
from static.passes.simplification import parts_of

OPSET = 18
DType = np.dtype[Any]


class Refusal(Exception):  # noqa: N818  (a reason, to which the writer adds the op and its line)
    """Raised by a rule that cannot write a node: ONNX lacks an op, a type or a size."""


def _wider(names: str, *carriers: str) -> dict[DType, list[DType]]:
    return {np.dtype(name): [np.dtype(carrier) for carrier in carriers] for name in names.split()}


# The types that hold all values of a type, the most widely implemented first.
_CARRIERS = {
    **_wider("bool int8 int16 uint8 uint16", "int32", "int64"),
    **_wider("uint32", "int64"),
    **_wider("float16", "float32", "float64"),
    **_wider("float32", "float64"),
}


class Operand(NamedTuple):
    """The type of a value, and the type as which an op takes it."""

    own: DType
    taken: DType


def type_of(dtype: DType) -> int:
    """Return ONNX's type of a dtype. Raises Refusal where there is none."""
    try:
        return helper.np_dtype_to_tensor_dtype(dtype)
    except (KeyError, ValueError):
        raise Refusal(f"ONNX has no tensors of {dtype}; convert it with astype") from None


def _name(dtype: DType) -> str:
    """Return the name of a type in the definitions of ONNX's ops."""
    return f"tensor({TensorProto.DataType.Name(type_of(dtype)).lower()})"


_DTYPES = {_name(np.dtype(name)): np.dtype(name) for name in ("bool", "float16", "float32", "float64")} | {
    _name(np.dtype(f"{sign}int{bits}")): np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@functools.cache
def _op_schema(op: str) -> Any:
    return onnx.defs.get_schema(op, OPSET)


@functools.cache
def _allowed_types(op: str) -> Mapping[str, Sequence[str]]:
    """Return the types that each type variable of an op may stand for."""
    return {entry.type_param_str: entry.allowed_type_strs for entry in _op_schema(op).type_constraints}


def operands(op: str, dtypes: Sequence[DType | None]) -> list[Operand | None]:
    """Return how an op takes values of these types; operands that must agree get their common type.

    None stands for an operand that is left out, or may be of any type. Raises Refusal where the op takes neither a type
    nor one that holds its values.
    """
    formal = list(_op_schema(op).inputs)
    of_each = [*formal, *[formal[-1]] * (len(dtypes) - len(formal))]
    variables = [entry.type_str if entry.is_homogeneous else "" for entry in of_each[: len(dtypes)]]
    together: dict[str, DType] = {}
    for variable, dtype in zip(variables, dtypes, strict=True):
        if variable and dtype is not None:
            together[variable] = np.result_type(together.get(variable, dtype), dtype)
    bound = {variable: _operand_of(op, variable, dtype) for variable, dtype in together.items()}
    return [None if dtype is None else bound.get(variable) for variable, dtype in zip(variables, dtypes, strict=True)]


def _operand_of(op: str, variable: str, dtype: DType) -> Operand:
    allowed = _allowed_types(op).get(variable, [variable])
    for candidate in (dtype, *_CARRIERS.get(dtype, [])):
        if _name(candidate) in allowed:
            return Operand(dtype, candidate)
    choices = ", ".join(str(_DTYPES[name]) for name in allowed if name in _DTYPES)
    raise Refusal(f"ONNX's {op} takes {choices}, not {dtype}; convert it with astype")


def results(op: str, inputs: Sequence[Operand | None], count: int, attributes: Mapping[str, Any]) -> list[Operand]:
    """Return the types of an op's results: as the op gives them, and in the type of its operands."""
    formal, variables = list(_op_schema(op).outputs), list(_op_schema(op).inputs)
    bound = {entry.type_str: operand for entry, operand in zip(variables, inputs, strict=False) if operand is not None}
    graphs = [value for value in attributes.values() if isinstance(value, onnx.GraphProto)]
    if graphs:
        made = [_dtype(value.type.tensor_type.elem_type) for value in graphs[0].output[-count:]]
        return [Operand(dtype, dtype) for dtype in made]
    return [_result(op, entry.type_str, bound, attributes) for entry in formal[:count]]


def _result(op: str, variable: str, bound: Mapping[str, Operand], attributes: Mapping[str, Any]) -> Operand:
    if variable in bound:
        return bound[variable]
    (*_, only) = _allowed_types(op).get(variable, [variable])
    if "to" in attributes:
        dtype = _dtype(attributes["to"])
    else:
        dtype = _dtype(attributes["value"].data_type) if "value" in attributes else _DTYPES[only]
    return Operand(dtype, dtype)


def _dtype(kind: int) -> DType:
    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))


Names = Any  # the name of a value, or a list of names for a node with several results
Rule = Callable[..., Names]


class UnwritableError(GraphError):
    """A graph has an op, a type or a size that ONNX does not have."""


def _absent(w: OnnxWriter, node: Node, *names: Names) -> Names:
    if node.op.family == "random":
        raise Refusal(f"ONNX draws by no key; {UNDRAWN}")
    raise Refusal("ONNX has no such op; leave it out of what is exported, or write it with other ops")


UNDRAWN = "call eval() on a model, and pass random numbers as an argument"


RULES: RuleTable[Rule] = RuleTable("ONNX", otherwise=_absent)


class OnnxWriter:
    """Writes the nodes of one graph, and of the graphs inside it, which see the names around them.

    weights   the constants: initializers of the outermost graph
    front     nodes that compute symbolic sizes from the inputs, before all other nodes
    nodes     the list that is being written: of the graph, or of a body inside it
    dtypes    the type of each value, by its name
    """

    def __init__(self, graph: Graph) -> None:
        self.weights: list[TensorProto] = []
        self.front: list[NodeProto] = []
        self.nodes: list[NodeProto] = []
        self.dtypes: dict[str, DType] = {}
        self._names: dict[Node, Names] = {}
        self._constants: dict[tuple[Any, ...], str] = {}
        self._sizes: dict[str, str] = {}
        self._count = 0
        self._axes = {
            name: (node.attrs["name"], axis)
            for node in reversed(graph.inputs)
            for axis, size in enumerate(node.shape)
            if isinstance(size, Dim)
            for name in [str(size)]
        }

    # Nodes ------------------------------------------------------------------------------------------------------

    def __call__(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node of an ONNX op on values of these names; return its result's name, a list for several outputs.

        Values of a type that the op does not take are cast to one that it takes, and its results are cast back.
        """
        taken_as = operands(op, [self.dtypes[name] if name else None for name in inputs])
        taken = [
            name if operand is None else self.cast(name, operand.taken)
            for name, operand in zip(inputs, taken_as, strict=True)
        ]
        names = [self.name(op) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, taken, names, name=names[0], **attributes))
        made = results(op, taken_as, outputs, attributes)
        self.dtypes.update((name, result.taken) for name, result in zip(names, made, strict=True))
        cast_back = [self.cast(name, result.own) for name, result in zip(names, made, strict=True)]
        return cast_back[0] if outputs == 1 else cast_back

    def name(self, stem: str) -> str:
        """Return a name that no value has yet."""
        self._count += 1
        name = f"{stem}_{self._count}"
        return self.name(stem) if name in self.dtypes else name

    def takes(self, name: str, spec: TensorSpec) -> onnx.ValueInfoProto:
        """Declare an input of that name and spec, of the model or of a body inside it."""
        self.dtypes[name] = spec.dtype
        return value_of(name, spec)

    def write(self, graph: Graph, inputs: Sequence[Names]) -> list[str]:
        """Write the nodes of a graph on inputs of these names; return the names of its outputs."""
        self._names.update(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            self.value(node)
        return [self._names[output] for output in graph.outputs]

    def write_again(self, graph: Graph, inputs: Sequence[Names]) -> list[str]:
        """Write a graph that may be written elsewhere too, with new names for its nodes."""
        outside, self._names = self._names, {}
        names = self.write(graph, inputs)
        self._names = outside
        return names

    def value(self, node: Node) -> Names:
        """Return the name of a node's result; the node is written now if it has not been."""
        if node not in self._names:
            self._names[node] = self._write(node)
        return self._names[node]

    def _write(self, node: Node) -> Names:
        if node.is_constant:
            return self._constant_node(node)
        rule = RULES[node.op]
        parts = parts_of(node) if rule is _absent and not node.is_input else None
        if parts is not None:
            return self._make_size_source(parts)
        try:
            names = rule(self, node, *map(self.value, node.inputs))
            return self.cast(names, node.dtype) if isinstance(names, str) else names
        except Refusal as reason:
            raise UnwritableError(f"{node.op.name} ({node.source or 'no line'}): {reason}") from None

    def _make_size_source(self, node: Node) -> Names:
        for source in node.inputs:
            if source not in self._names:
                self._names[source] = self._make_size_source(source)
        return self.value(node)

    # Constants and sizes ----------------------------------------------------------------------------------------

    def _constant_node(self, node: Node) -> str:
        value = node.attrs["value"]
        if not isinstance(value, Dim):
            return self.constant(np.asarray(value, node.dtype))
        return self.cast(self.number(value), node.dtype)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Return the name of a constant array."""
        array = np.asarray(value, dtype)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            type_of(array.dtype)
            name = self._constants[key] = self.name("constant")
            self.dtypes[name] = array.dtype
            self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return self._constants[key]

    def ints(self, values: Iterable[int]) -> str:
        """Return the name of a constant vector of int64."""
        return self.constant([*values], np.int64)

    def shape(self, sizes: Iterable[Size]) -> str:
        """Return the name of an int64 vector of sizes, computed where some are symbolic."""
        held = list(sizes)
        numbers = [size for size in held if not isinstance(size, Dim)]
        if len(numbers) == len(held):
            return self.ints(numbers)
        return self("Concat", *map(self.size, held), axis=0)

    def size(self, size: Size) -> str:
        """Return the name of an int64 vector of one size."""
        if not isinstance(size, Dim):
            return self.ints([size])
        if str(size) not in self._sizes:
            here, self.nodes = self.nodes, self.front
            self._sizes[str(size)] = self._compute_size(size)
            self.nodes = here
        return self._sizes[str(size)]

    def number(self, size: Size) -> str:
        """Return the name of an int64 scalar of one size."""
        return self("Squeeze", self.size(size)) if isinstance(size, Dim) else self.constant(size, np.int64)

    def _compute_size(self, size: Dim) -> str:
        """Write a symbolic size: read from an input that has it, or computed from other sizes."""
        if str(size) in self._axes:
            name, axis = self._axes[str(size)]
            return self("Shape", name, start=axis, end=axis + 1)
        total = ""
        for monomial, coefficient in size.terms:
            term = self.ints([coefficient])
            for atom in monomial:
                term = self("Mul", term, self._atom(atom, size))
            total = term if not total else self("Add", total, term)
        return total

    def _atom(self, atom: Atom, size: Dim) -> str:
        named = Dim({(atom,): 1})
        if not atom.args or str(named) != str(size):
            if not atom.args and str(named) not in self._axes:
                raise Refusal(f"no input has the size {atom} alone in an axis; name it in one")
            if str(named) != str(size):
                return self.size(named)
        first, other = map(self.size, atom.args)
        if atom.name == "floordiv" and not dims.same(dims.maximum(atom.args[0], 0), atom.args[0]):
            first = self("Sub", first, self("Mod", first, other))  # Div goes towards 0
        return self({"floordiv": "Div", "mod": "Mod", "max": "Max", "min": "Min"}[atom.name], first, other)

    # What many rules need ---------------------------------------------------------------------------------------

    def cast(self, name: str, dtype: Any) -> str:
        """Return a value in another dtype, or its own name where it has that dtype."""
        kind = np.dtype(dtype)
        return name if self.dtypes[name] == kind else self("Cast", name, to=type_of(kind))

    def typed(self, names: Sequence[str], dtype: Any) -> list[str]:
        """Return the values of these names in one dtype."""
        return [self.cast(name, dtype) for name in names]

    def scalar(self, value: float, like: Node) -> str:
        """Return a number in the dtype of a node."""
        return self.constant(value, like.dtype)

    def zeros(self, shape: Sequence[Size], dtype: Any, value: Any = 0) -> str:
        """Return an array filled with one value."""
        element = numpy_helper.from_array(np.asarray([value], dtype))
        return self("ConstantOfShape", self.shape(shape), value=element)

    def write_reshape(self, name: str, shape: Sequence[Size]) -> str:
        """Return a value in another shape."""
        return self("Reshape", name, self.shape(shape), allowzero=1)

    def body(self, write: Callable[[], tuple[list[Any], list[str]]], inputs: Sequence[Any] = ()) -> GraphProto:
        """Return a graph inside this one with the nodes that `write` adds.

        `write` returns the outputs' specs and names.
        """
        here, self.nodes = self.nodes, []
        specs, names = write()
        copies = [self("Identity", name) for name in names]
        outputs = [value_of(name, spec) for name, spec in zip(copies, specs, strict=True)]
        made = helper.make_graph(self.nodes, self.name("body"), [*inputs], outputs)
        self.nodes = here
        return made


def value_of(name: str, spec: TensorSpec) -> onnx.ValueInfoProto:
    """Return the declaration of an input or output; symbolic sizes get their text as a name."""
    sizes = [size if isinstance(size, int) else str(size) for size in spec.shape]
    return helper.make_tensor_value_info(name, type_of(spec.dtype), sizes)
