"""Symbolic dimensions: exact integer expressions over named sizes such as `B` and `T`.

A dimension is kept in one normal form, a sum of products with integer coefficients, so that two expressions
are the same dimension exactly when they are written the same (`B*(T+1) == B*T + B`). What a polynomial cannot
hold (`//` and `%` that do not divide, `max`, `min`) is an atom inside it. Every named size is 0 or more.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, Union

from graphs import tree
from graphs.errors import ControlFlowError, GraphError, ShapeError, is_asked_by_user, locate, user_call

Size: TypeAlias = Union[int, "Dim"]
Shape: TypeAlias = tuple[Size, ...]
Monomial: TypeAlias = tuple["Atom", ...]

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}
_INFIX = {"floordiv": "//", "mod": "%"}


class Atom:
    """One factor of a term: a named size, or a function of dimensions that is no polynomial. Equal text means equal."""

    __slots__ = ("args", "key", "name")

    def __init__(self, name: str, *args: Size) -> None:
        self.name, self.args = name, args
        self.key = self._text()

    def _text(self) -> str:
        if self.name in _INFIX:
            return _INFIX[self.name].join(_parenthesize(a) for a in self.args)
        return f"{self.name}({', '.join(map(str, self.args))})" if self.args else self.name

    def __str__(self) -> str:
        return self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Dim:
    """An immutable symbolic dimension; `+ - *` are exact, `//` and `%` simplify where they divide.

    Comparing raises ControlFlowError when the answer depends on the sizes: a trace must not guess.
    """

    __slots__ = ("key", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = [(m, c) for m, c in terms.items() if c]
        self.terms: tuple[tuple[Monomial, int], ...] = tuple(
            sorted(kept, key=lambda t: (-len(t[0]), [str(a) for a in t[0]]))
        )
        self.key: str = "".join(_signed_product(m, c) for m, c in self.terms).removeprefix("+") or "0"

    def __str__(self) -> str:
        return self.key

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        difference = self - other
        if not isinstance(difference, Dim):
            return difference == 0
        if _lower_bound(difference) > 0 or _lower_bound(-difference) > 0:
            return False
        raise _undecided_error(self, "==", other)

    def __add__(self, other: Size) -> Size:
        terms = dict(self.terms)
        for monomial, coefficient in _terms(other):
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return _simplest(terms)

    def __mul__(self, other: Size) -> Size:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = tuple(sorted(left + right, key=str))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return _simplest(terms)

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + -other

    def __rsub__(self, other: Size) -> Size:
        return -self + other

    def __floordiv__(self, other: Size) -> Size:
        exact = _divide(self, other)
        return exact if exact is not None else _atom("floordiv", self, other)

    def __rfloordiv__(self, other: int) -> Size:
        return 0 if other == 0 else _atom("floordiv", other, self)

    def __mod__(self, other: Size) -> Size:
        return 0 if _divide(self, other) is not None else _atom("mod", self, other)

    def __rmod__(self, other: int) -> Size:
        return 0 if other == 0 else _atom("mod", other, self)

    __radd__ = __add__
    __rmul__ = __mul__

    def __lt__(self, other: Size) -> bool:
        return not self._at_least(other, "<")

    def __ge__(self, other: Size) -> bool:
        return self._at_least(other, ">=")

    def __gt__(self, other: Size) -> bool:
        return self._at_least(other, ">", 1)

    def __le__(self, other: Size) -> bool:
        return not self._at_least(other, "<=", 1)

    def _at_least(self, other: Size, sign: str, margin: int = 0) -> bool:
        difference = self - other - margin
        if not isinstance(difference, Dim):
            return difference >= 0
        if _lower_bound(difference) >= 0:
            return True
        if _lower_bound(-difference) > 0:
            return False
        raise _undecided_error(self, sign, other)

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        raise _refusal(
            f"the symbolic dimension {self} has no value while the graph is traced; compile with a number "
            "there (shapes='exact'), or keep the size symbolic"
        )

    __int__ = __index__


def dim(name: str) -> Dim:
    """A named size, 0 or more. Raises ShapeError when the name is no identifier."""
    if not _NAME.match(name):
        raise ShapeError(f"dimension names are identifiers, got {name!r}; write an expression as dim('T') + 1")
    return Dim({(Atom(name),): 1})


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes, as an expression when that is not known."""
    return _extreme("max", a, b)


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes, as an expression when that is not known."""
    return _extreme("min", a, b)


def _extreme(name: str, a: Size, b: Size) -> Size:
    for larger, smaller in ((a, b), (b, a)):
        if _lower_bound(larger - smaller) >= 0:
            return larger if name == "max" else smaller
    return _atom(name, a, b)


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are equal for every value of their names; never raises."""
    if isinstance(a, Dim) or isinstance(b, Dim):
        return isinstance(a, Dim) and isinstance(b, Dim) and a.terms == b.terms
    return a == b


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two shapes are equal for every value of their names."""
    return a is b or (len(a) == len(b) and all(map(same, a, b)))


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes: the number of elements of a shape."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


class Sizes(tuple[Any, ...]):
    """A shape as PyTorch has it: a tuple of sizes, also to trees, that can be asked for the number of elements."""

    __slots__ = ()

    def numel(self) -> Size:
        """The product of the sizes."""
        return product(self)

    def __getitem__(self, key: Any) -> Any:
        part = tuple.__getitem__(self, key)
        return Sizes(part) if type(key) is slice else part

    def __add__(self, other: Any) -> Any:
        return Sizes(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Sizes((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Any:
        return Sizes(tuple.__mul__(self, count))

    __rmul__ = __mul__


tree.register(Sizes, lambda sizes: (tuple(sizes), None), lambda _, sizes: Sizes(sizes))


def symbols(size: Size) -> frozenset[str]:
    """The names a size depends on."""
    if not isinstance(size, Dim):
        return frozenset()
    atoms = {atom for monomial, _ in size.terms for atom in monomial}
    nested = (symbols(a) for atom in atoms for a in atom.args)
    return frozenset(a.name for a in atoms if not a.args).union(*nested)


def is_symbolic(value: Any) -> bool:
    """Whether a size, a slice, or a tuple of these holds a symbolic size."""
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    return isinstance(value, Dim) or (isinstance(value, tuple) and any(map(is_symbolic, value)))


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """The value of a size, given the value of each name. Raises ShapeError for a missing name or a division by 0."""
    if not isinstance(size, Dim):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        for atom in monomial:
            coefficient *= _value(atom, values)
        total += coefficient
    return total


def solve(expected: Iterable[tuple[str, Shape]], actual: Iterable[tuple[int, ...]]) -> dict[str, int]:
    """The value of every name, solved from the actual shapes of a call.

    `expected` pairs a label with a shape. A name alone in an axis is read first. An expression with one unknown name of
    degree one is solved as soon as its other names are known. All other axes are checked.
    Raises ShapeError naming the dimension and both values when the shapes contradict each other.
    """
    axes = [
        (label, e, a)
        for (label, shape), got in zip(expected, actual, strict=True)
        for e, a in zip(shape, got, strict=True)
    ]
    axes.sort(key=lambda axis: len(axis[1].key) if isinstance(axis[1], Dim) else 0)
    values: dict[str, int] = {}
    while axes:
        waiting = [axis for axis in axes if not _use(*axis, values)]
        if len(waiting) == len(axes):
            unsolved = {name for _, want, _ in waiting for name in symbols(want)} - values.keys()
            raise ShapeError(f"no input fixes the dimension {', '.join(sorted(unsolved))}; name it alone in an axis")
        axes = waiting
    return values


def _use(label: str, want: Size, got: int, values: dict[str, int]) -> bool:
    """Check one axis, or solve it for its unknown name; False when too many names are still unknown."""
    unknown = symbols(want) - values.keys()
    if not unknown:
        if evaluate(want, values) != got:
            raise ShapeError(_contradiction(label, want, evaluate(want, values), got))
        return True
    name = min(unknown)
    if len(unknown) > 1 or not _is_linear(want, name):
        return False
    offset = evaluate(want, {**values, name: 0})
    slope = evaluate(want, {**values, name: 1}) - offset
    if not slope:
        return False
    values[name], rest = divmod(got - offset, slope)
    if rest or values[name] < 0:
        raise ShapeError(f"{label}: no {name} >= 0 makes the dimension {want} equal {got}")
    return True


def _is_linear(size: Size, name: str) -> bool:
    """Whether a name is a factor of each term once at most, and no argument of a function."""
    if not isinstance(size, Dim):
        return True
    products = [monomial for monomial, _ in size.terms]
    return all(sum(a.name == name and not a.args for a in m) <= 1 for m in products) and not any(
        name in symbols(argument) for m in products for atom in m for argument in atom.args
    )


def _contradiction(label: str, want: Size, value: int, got: int) -> str:
    if isinstance(want, Dim):
        return f"{label}: dimension {want} is {value} from the other inputs, but {got} here"
    return f"{label}: a dimension compiled as {want} is {got}; compile again, or make it symbolic"


def _value(atom: Atom, values: Mapping[str, int]) -> int:
    try:
        if not atom.args:
            return values[atom.name]
        left, right = (evaluate(a, values) for a in atom.args)
        return _FUNCTIONS[atom.name](left, right)
    except KeyError:
        raise ShapeError(f"nothing tells the size {atom.name}; name it in the shape of an input") from None
    except ZeroDivisionError:
        raise ShapeError(f"{atom} divides by a size of 0; use another size") from None


def _terms(size: Size) -> Iterable[tuple[Monomial, int]]:
    return size.terms if isinstance(size, Dim) else (((), size),)


def _simplest(terms: Mapping[Monomial, int]) -> Size:
    size = Dim(terms)
    if not size.terms:
        return 0
    monomial, coefficient = size.terms[0]
    return coefficient if len(size.terms) == 1 and not monomial else size


def _atom(name: str, *args: Size) -> Dim:
    return Dim({(Atom(name, *args),): 1})


def _parenthesize(size: Size) -> str:
    text = str(size)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _signed_product(monomial: Monomial, coefficient: int) -> str:
    scale = [str(abs(coefficient))] if abs(coefficient) != 1 or not monomial else []
    alone = len(monomial) + len(scale) == 1 and coefficient > 0
    factors = [str(a) if alone or a.name not in _INFIX else f"({a})" for a in monomial]
    return ("-" if coefficient < 0 else "+") + "*".join(scale + factors)


def _divide(size: Dim, divisor: Size) -> Size | None:
    """The exact quotient by an integer or a single product; None when some term does not divide."""
    if isinstance(divisor, Dim) and size.terms == divisor.terms:
        return 1
    parts = list(_terms(divisor))
    if len(parts) != 1 or not parts[0][1]:
        return None
    factor, scale = parts[0]
    quotient: dict[Monomial, int] = {}
    for monomial, coefficient in size.terms:
        rest = list(monomial)
        for atom in factor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % scale:
            return None
        quotient[tuple(rest)] = coefficient // scale
    return _simplest(quotient)


def _lower_bound(size: Size) -> float:
    """A lower bound of a size, given that every name is 0 or more; -inf where none is known."""
    return sum(_term_bound(monomial, coefficient) for monomial, coefficient in _terms(size))


def _term_bound(monomial: Monomial, coefficient: int) -> float:
    if not monomial:
        return coefficient
    return 0.0 if coefficient > 0 and all(map(_is_natural, monomial)) else float("-inf")


def _is_natural(atom: Atom) -> bool:
    if atom.name == "max":
        return any(_lower_bound(a) >= 0 for a in atom.args)
    return all(_lower_bound(a) >= 0 for a in atom.args)


def _undecided_error(left: Size, sign: str, right: Size) -> ControlFlowError:
    return _refusal(
        f"`{left} {sign} {right}` depends on a symbolic dimension; compile with numbers (shapes='exact'), "
        "or write the code so that it does not ask"
    )


_OURS = {name: f"write graphs.{name}, which takes it" for name in ("arange", "zeros", "ones", "full")}
_OF_NUMPY = _OURS | {"eye": "write graphs.where(graphs.arange(n)[:, None] == graphs.arange(n), 1.0, 0.0)"}


def _refusal(message: str) -> ControlFlowError:
    """Make the ControlFlowError. A trace notes it when the user's code asked, so that no `except` hides it."""
    library, _, maker = user_call().rpartition(".")
    if library in ("np", "numpy") and maker in _OF_NUMPY:
        message = (
            f"{library}.{maker} of a symbolic dimension needs its number, which only a run has; {_OF_NUMPY[maker]}"
        )
    error = ControlFlowError(locate(message))
    if is_asked_by_user(__file__, _SURFACE):
        for refuse in refusers:
            refuse(error)
    return error


_SURFACE = str(Path(__file__).with_name("surface.py"))  # whose methods ask in the user's place
refusers: list[Callable[[GraphError], None]] = []  # told of each question of the user's that sizes would decide
