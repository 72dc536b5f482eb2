"""Op: one operation, defined once for both engines.

An op is a NumPy kernel, a rule for the spec of its result, one vector-Jacobian product (VJP) per input, and a
cost. A VJP rule is written in ops, never in NumPy, so that it runs at once on arrays, is recorded on tensors and
appends nodes on symbols. **Its parameters name what it needs**, and nothing else is kept for it:

    g                the cotangent of the output (always first)
    x, y, z          the value of input 0, 1, 2; of any input: input0, input1, ...
    out              the value of the output
    x_shape, ...     the shape of an input; x_dtype, ... its dtype
    index, shapes    for ops of any number of inputs: which one, and the shapes of all
    anything else    the attribute of that name

A rule that needs only a shape therefore holds only a shape: `lambda g, x_shape, axis: ...`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from numpy import ndarray, ufunc

from graphs import dispatch, wrong_calls
from graphs.dims import Dim, Shape, Size, same
from graphs.dispatch import interpreters
from graphs.errors import ArgumentError, GraphError, OptionError, locate
from graphs.promotion import HELD, SCALARS, check_dtype
from graphs.spec import TensorSpec

Array = Any  # what an op takes and gives: an array, a tensor or a symbol
Attrs = dispatch.Attrs
Prepared = tuple[tuple[Any, ...], Attrs]
Kernel = Callable[..., Any]
Infer = Callable[..., TensorSpec]
Prepare = Callable[..., Prepared]
Cost = Callable[..., Size]
Workspace = Callable[..., TensorSpec | None]
Shortcut = Callable[..., Any]
Layout = Literal["rows", "inputs", "ufunc", "any"]
Fails = Literal["raises", "warns", "of floats", "never"]

_INPUTS = {"x": 0, "y": 1, "z": 2} | {f"input{i}": i for i in range(64)}
OUTPUT = -1
SHAPES = "tuple([i.shape for i in inputs])"


def is_ours(function: Any) -> bool:
    """Whether a function is the library's, and so depends on its arguments alone. A user's may read anything."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] in _PACKAGES


_PACKAGES = {"graphs", "static", "dynamic"}


class Residual(NamedTuple):
    """A value that a gradient rule reads: an `expression` in `inputs`, `out` and `attrs`, of parameter names alone.

    `source` is the number of the input whose value it is, `OUTPUT` for the output, and None when it is no tensor value.
    """

    expression: str
    source: int | None = None


OUT = Residual("out", OUTPUT)
_INDEX = Residual("index")


def of_input(number: int, field: str = "") -> Residual:
    """The residual that is an input, or with `field` its "shape" or "dtype"."""
    return Residual(f"inputs[{number}].{field}") if field else Residual(f"inputs[{number}]", number)


def of_option(name: str) -> Residual:
    """The residual that is an option of a call, whatever its name is."""
    return Residual(f"attrs[{name!r}]")


def _word(name: str) -> Residual | None:
    """The residual that a reserved parameter name of rules stands for; None for a name that must be an option."""
    stem, _, field = name.partition("_")
    if stem in _INPUTS and field in ("", "shape", "dtype"):
        return of_input(_INPUTS[stem], field)
    return {"out": OUT, "index": _INDEX, "shapes": Residual(SHAPES)}.get(name)


class Rule:
    """The VJP of one input: `apply(g, *residuals)`.

    Without `residuals`, the parameters of `apply` are reserved words of rules, or names of options. `is_ours` tells
    whether `apply` belongs to the library, and so depends on its arguments alone.
    """

    __slots__ = ("apply", "is_ours", "residuals")

    def __init__(self, apply: Callable[..., Any], residuals: Sequence[Residual] | None = None) -> None:
        self.apply = apply
        self.is_ours = is_ours(apply)
        if residuals is None:
            residuals = [_word(name) or of_option(name) for name in list(inspect.signature(apply).parameters)[1:]]
        self.residuals = tuple(residuals)

    @property
    def reads_values(self) -> bool:
        """Whether the rule reads the value of an input or of the output."""
        return any(residual.source is not None for residual in self.residuals)

    def fields(self, index: str) -> tuple[str, ...]:
        """The expression of each residual, for the input numbered `index`."""
        return tuple([index if residual is _INDEX else residual.expression for residual in self.residuals])


OF_INFER = -1


def _arity(infer: Infer) -> int | None:
    """How many specs `infer` takes; None for a varying number."""
    kinds = [p.kind for p in inspect.signature(infer).parameters.values()]
    return None if inspect.Parameter.VAR_POSITIONAL in kinds else len([k for k in kinds if k in _BY_PLACE])


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _checked_infer(name: str, infer: Infer, again: Prepare | None) -> Infer:
    """Wrap `infer`: it checks dtypes, and that `again` maps these operands and attributes to themselves.

    `again` is the op's `prepare`, or what does the same for its results. So no rule sees attributes that no call could
    have led to: attributes may be read from a file, and then belong to other operands. A user's `prepare` need not map
    its own result to itself, and is not asked.
    """
    prepare_again = again if is_ours(again) else None

    def infer_spec(*specs: TensorSpec, **attrs: Any) -> TensorSpec:
        for spec in specs:
            check_dtype(spec.dtype)
        if prepare_again is None:
            return infer(*specs, **attrs)
        try:
            inputs, prepared = prepare_again(*specs, **attrs)
            spec = infer(*specs, **attrs)
        except GraphError:
            raise
        except wrong_calls.PLAIN as error:
            raise wrong_calls.explain_wrong_call(error, name, prepare_again) from error
        if [*map(id, inputs)] != [*map(id, specs)] or not _is_same(prepared, attrs):
            raise OptionError(f"no call leads to the options {attrs} for these operands; leave that to the op")
        return spec

    return infer_spec


def _is_same(value: Any, other: Any) -> bool:
    """Whether two attributes, or parts of them, are of one type and equal."""
    if value is other:
        return True
    if type(value) is not type(other):
        return False
    if isinstance(value, dict):
        return value.keys() == other.keys() and all(_is_same(part, other[key]) for key, part in value.items())
    if isinstance(value, tuple):
        return len(value) == len(other) and all(map(_is_same, value, other))
    return same(value, other) if isinstance(value, Dim) else bool(value == other)


class TorchName(NamedTuple):
    """The PyTorch function that is the same as an op of one or two operands; it becomes a method of tensors as well.

    takes     how operands are converted: "any" not at all; "floats" ints to floats; "truths" to whether they are
              nonzero;
              "numbers" refuses bools, "ints" floats too; two come to one dtype as "promoted", "compared" or "bits" say
    name      PyTorch's name, where it differs from the op's
    alias     other names, with a space between them
    in_place  whether a tensor can take the result: `x.exp_()`
    single    the places of operands that float16 meets in float32, with one rounding of the result, where they are
              numbers or have no axes
    """

    takes: str
    name: str = ""
    alias: str = ""
    in_place: bool = False
    single: tuple[int, ...] = ()


Vjp = Callable[..., Any] | Rule | None  # a gradient rule as it is written, or made; None where there is no gradient


def _rule(name: str, rule: Vjp, infer: Infer) -> Rule | None:
    """Make a Rule of a function. Raises ValueError where `infer` takes an option whose name is a word of rules."""
    if rule is None or isinstance(rule, Rule):
        return rule
    parameters = () if is_ours(rule) else inspect.signature(infer).parameters.values()
    words = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and _word(p.name)]
    if words:
        raise ValueError(f"{name}: {words[0]!r} is a word of gradient rules, not an option; give it another name")
    return Rule(rule)


_COMPUTING = ("elementwise", "reduction")  # families whose rules compute with each element by itself, or along axes
# By family: what values may make a kernel do, and whether it gives the same bits again. Other families are not known.
_FAMILIES: dict[str, tuple[Fails, bool]] = {
    **dict.fromkeys(
        ("elementwise", "reduction", "movement", "linalg", "creation", "sorting", "window"), ("warns", True)
    ),
    "composed": ("warns", False),
    "source": ("never", False),
}


class Op:
    """One operation. Call it on arrays, tensors or symbols: the type decides whether it runs or is recorded.

    name      the array API standard's name where it has one
    kernel    `kernel(*arrays, out=None, **attrs)` in NumPy
    infer     `infer(*specs, **attrs) -> TensorSpec`, or an error that says which rule is broken
    rules     one VJP rule per input, None where there is no gradient; () when no input is differentiable
    common    the work that all rules share: it maps the cotangent, once, to the value that the rules take in its place
    prepare   turns a user's call into `(inputs, attrs)` with defaults filled in and axes made positive. Called with
              its own result it returns the same, by which `infer` knows that the attributes are of these operands
    again     the function that maps a result of `prepare` to itself, where the signature of `prepare` does not allow it
    cost      floating point operations: how many for each element of the result, or `cost(*specs, out=spec, **attrs)`
    doc       the docstring of the op; by default the kernel's
    family    elementwise, reduction, movement, ...: what engines may assume about the op
    arity     the number of inputs, None when it varies; by default read off the signature of `infer`
    effect    the op does something beside computing, such as printing: never left out, merged, moved or done twice
    parts     `parts(*inputs, **attrs)`: the same result, to the bit, in simpler ops, which an engine may compile better
    zero_safe   the rules make zeros of a zero cotangent, whatever the values are; by default true for rules of the
              library that read no value
    holds     an option holds values that were saved for the gradient
    gathers   the kernel reads no more elements of its first input than it returns
    marks     the op returns its input, and only marks it while a function is traced: no finished graph holds the op
    divides   a sum over axes that is divided by the count of what was added
    copies    the rules read the result, as PyTorch's do not: a change of it in place first copies it for them
    widens    the rules round more than once, and take float16 as float32: elementwise ops and reductions whose rules
              read values. The result of a rule is rounded to float16 again
    rule_fails  a rule may raise for values that the kernel takes; by default true for a user's rules alone
    fails     what values may make the kernel do though the specs are right: it "raises", "warns", warns "of floats" and
              not of ints, or does neither ("never"), as a view. The default is the family's, and "raises" without one
    repeatable  the kernel gives the same bits for the same inputs, and may run twice; the default is the family's
    exact     IEEE 754 defines each element of the result to the last bit, wherever it lies in an array
    overwrites  the numbers of the inputs that `out` may be: the kernel reads an element of such an input before it
              writes the same element of the result. For a ufunc, all inputs
    workspace   `workspace(*specs, in_rows=bools, out=spec, **attrs)`: the spec of an array that the kernel needs beside
              its result, or may need where sizes are symbolic; None for none. `in_rows` tells which operands surely lie
              in row-major order. An engine that plans memory gives it as `workspace`; else the kernel makes one
    layout    how the result lies in the memory of a tensor, as PyTorch's does: "rows" (row by row), "inputs" (its axes
              in the order in which the inputs have them), "ufunc" (the same, which NumPy's functions do themselves
              where the inputs agree), or "any" (as the kernel leaves it). By default "inputs" or "ufunc" for
              elementwise ops, "any" for views and where ops run other ops, and else "rows"
    listed    whether `get` finds the op by its name; ops that are internal to an engine are not listed
    torch     the PyTorch function that the op is; NumPy's is read off the kernel
    """

    def __init__(
        self,
        name: str,
        kernel: Kernel,
        infer: Infer,
        *,
        rules: Sequence[Vjp] = (),
        common: Vjp = None,
        prepare: Prepare | None = None,
        again: Prepare | None = None,
        cost: Cost | int,
        family: str,
        arity: int | None = OF_INFER,
        broadcasts: bool = False,
        view: bool = False,
        infix: str = ", ",
        effect: bool = False,
        parts: Callable[..., Any] | None = None,
        zero_safe: bool = False,
        rule_fails: bool | None = None,
        holds: bool = False,
        gathers: bool = False,
        marks: bool = False,
        divides: bool = False,
        copies: bool = False,
        fails: Fails | None = None,
        repeatable: bool | None = None,
        exact: bool = False,
        overwrites: Sequence[int] = (),
        workspace: Workspace | None = None,
        layout: Layout | None = None,
        listed: bool = True,
        torch: TorchName | None = None,
        doc: str = "",
    ) -> None:
        self.name = self.__name__ = name
        self.kernel = kernel
        self.infer = infer if family == "control" else _checked_infer(name, infer, again or prepare)
        self.rules = tuple(_rule(name, rule, infer) for rule in rules)
        self.common = _rule(name, common, infer)
        self.prepare = prepare
        self.cost = cost if callable(cost) else (lambda *_, out, **__: out.size * cost)
        self.family = family
        self.arity = _arity(infer) if arity == OF_INFER else arity
        self.broadcasts = broadcasts
        self.view, self.infix = view, infix
        self.effect, self.parts = effect, parts
        written = [rule for rule in (*self.rules, self.common) if rule]
        is_ours_alone = all(rule.is_ours for rule in written)
        self.zero_safe = zero_safe or (
            bool(written) and is_ours_alone and not any(rule.reads_values for rule in written)
        )
        self.holds, self.gathers, self.exact = holds, gathers, exact
        self.marks, self.divides, self.copies = marks, divides, copies
        family_fails, family_repeats = _FAMILIES.get(family, ("raises", False))
        self.fails: Fails = fails or ("never" if view else family_fails)
        self.repeatable = family_repeats if repeatable is None else repeatable
        if isinstance(kernel, ufunc) and kernel.signature is None:  # matmul is one with a signature
            overwrites = range(kernel.nin)
        self.overwrites = tuple(overwrites)
        self.workspace = workspace
        self.widens = family in _COMPUTING and any(rule.reads_values for rule in written)
        is_any = view or effect or family == "control"
        by_inputs: Layout = "ufunc" if isinstance(kernel, ufunc) else "inputs"
        self.layout: Layout = layout or ("any" if is_any else by_inputs if family == "elementwise" else "rows")
        self.torch = torch
        self.rule_fails = not is_ours_alone if rule_fails is None else rule_fails
        self.may_have_effect = effect or family == "control"  # as what the subgraphs hold decides
        self.__doc__ = doc or kernel.__doc__
        # By the type of the first input: an engine's faster equivalent of its interpreter.
        self.shortcuts: dict[type, Shortcut] = {}
        self.recorder: Any = None  # what the compiled loops of an engine know of the op
        if listed:
            register(self)

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the op, for `help` and editors."""
        if self.prepare is not None:
            return inspect.signature(self.prepare).replace(return_annotation=inspect.Signature.empty)
        names = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in list(_INPUTS)[: self.arity]]
        return inspect.Signature(names)

    @property
    def differentiable(self) -> bool:
        """Whether some input has a gradient."""
        return any(self.rules)

    def rule(self, index: int) -> Rule | None:
        """The VJP rule of one input; an op of any number of inputs has one rule for all."""
        if not self.rules:
            return None
        return self.rules[0 if self.arity is None else index]

    def __call__(self, /, *args: Any, **attrs: Any) -> Any:
        """Run, record or trace the op, as the values decide. Raises ShapeError, DTypeError or TypeError."""
        shortcut = self.shortcuts.get(type(args[0])) if args else None
        if shortcut is not None and (self.prepare is not None or (len(args) == self.arity and not attrs)):
            return shortcut(*args, **attrs)
        return self.general(*args, **attrs)

    def general(self, /, *args: Any, **attrs: Any) -> Any:
        """Run the op as a call does, but without shortcuts."""
        if self.prepare is not None:
            args, attrs = self._prepare(self.prepare, args, attrs)
        elif len(args) != self.arity or attrs:
            raise ArgumentError(
                locate(f"{self.name} takes {self.arity} inputs and no options, got {len(args)} and {attrs or 'none'}")
            )
        return self.apply(args, attrs)

    def apply(self, args: Sequence[Any], attrs: Attrs) -> Any:
        """Run the op on the result of `prepare`: the type of an input decides which interpreter runs the op.

        Raises DTypeError for an operand of a dtype that no tensor has. Interpreters check the operands that they run.
        """
        unusual = False
        for arg in args:  # a loop that every op goes through: no call for what is usual
            kind = type(arg)
            if kind is not ndarray:
                if (interpreter := interpreters.get(kind)) is not None:
                    return interpreter(self, args, attrs)
                unusual = unusual or kind not in SCALARS
            elif arg.dtype.num not in HELD:
                unusual = True
        if unusual:
            dispatch.check_operands(self, args)
        return dispatch.run_at_once(self, args, attrs)

    def _prepare(self, prepare: Prepare, args: Sequence[Any], attrs: Attrs) -> Prepared:
        try:
            return prepare(*args, **attrs)
        except wrong_calls.WRONG as error:
            operands = args[:1] if self.arity is None else args[: self.arity]
            if self.arity is None and operands and isinstance(operands[0], (list, tuple)):
                operands = operands[0]
            broken = dispatch.unheld(operands) or error  # text has no axes, but that is not what is wrong with it
            if isinstance(broken, GraphError):
                raise dispatch.explain_error(self, args, broken) from None
            raise dispatch.explain_error(
                self, args, wrong_calls.explain_wrong_call(error, self.name, prepare)
            ) from error

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return get, (self.name,)


_registry: dict[str, Op] = {}


def register(op: Op) -> None:
    """Enter an op under its name. Raises ValueError when another op has that name.

    A user's own op may be defined again by its module: a notebook's cell is run more than once.
    """
    held = _registry.get(op.name)
    again = held and held.family == op.family == "custom" and held.kernel.__module__ == op.kernel.__module__
    if held and not again:
        raise ValueError(f"an op named {op.name!r} exists already; choose another name")
    _registry[op.name] = op


def get(name: str) -> Op:
    """The op of that name; raises GraphError when there is none."""
    if name not in _registry:
        raise GraphError(f"no op is named {name!r}; import the module that defines it")
    return _registry[name]


def registered_ops() -> dict[str, Op]:
    """Every listed op, by name."""
    return dict(_registry)


# Rules ----------------------------------------------------------------------------------------------------------------


R = TypeVar("R")

TABLES: list[RuleTable[Any]] = []
"""Every table that there is."""


class RuleTable(dict[Op, R]):
    """The rules for one purpose (a room), by op: `table[op]` is the op's own rule, its family's, or else `otherwise`.

    `otherwise` must be right for any op: treat it as opaque, run it one by one, run NumPy's kernel, or refuse it by
    name. A user's op gets `otherwise`, as no table has a rule for the family "custom". `in` tells whether an op has its
    own rule.

        padding = RuleTable("padding", otherwise=anything, families={"elementwise": by_element})

        @padding.for_op("take", "take_along_axis")
        def picked(node, other, sources): ...

        padding[node.op](node, other, sources)
    """

    def __init__(self, room: str, *, otherwise: R, families: Mapping[str, R] | None = None) -> None:
        super().__init__()
        self.room, self.otherwise, self.families = room, otherwise, dict(families or {})
        TABLES.append(self)

    def for_op(self, *ops: Op | str) -> Callable[[R], R]:
        """Enter the decorated rule for these ops, or ops of these names. Raises as `enter` does."""

        def enter(rule: R) -> R:
            self.enter(dict.fromkeys(ops, rule))
            return rule

        return enter

    def enter(self, rules: Mapping[Op | str, R] | Mapping[Op, R] | Mapping[str, R]) -> None:
        """Enter a rule for each op. Raises ValueError for a second one, and GraphError for a name that no op has."""
        for key, rule in rules.items():
            op = key if isinstance(key, Op) else get(key)
            if op in self:
                raise ValueError(f"{self.room}: {op.name} has a rule already")
            self[op] = rule

    def __missing__(self, op: Op) -> R:
        return self.families.get(op.family, self.otherwise)

    def answer(self, op: Op) -> Literal["own", "family", "otherwise"]:
        """Whether the rule of an op is its own, its family's, or `otherwise`."""
        return "own" if op in self else "family" if op.family in self.families else "otherwise"


# Cotangents that are not one array ------------------------------------------------------------------------------------


class PartCotangents(dict[int, Any]):
    """The cotangent of several tensors at once, by number; a missing number means a zero cotangent."""


class SliceCotangent(NamedTuple):
    """A cotangent of this shape that is `g` where the basic index `key` selects it, and zero elsewhere."""

    g: Any
    shape: Shape
    key: tuple[Any, ...]
