"""Symbol: a value that is not known yet, while a function is traced to a graph.

A `Symbol` of a tensor computes like PyTorch, an `ArraySymbol` like NumPy.

Read `Symbol` first. `converts`, `callee` and `unconverted_reason` are what a conversion of control flow tells the
engine: which function to call in place of another, and why Python decides somewhere. The rest is about weak symbols,
which stand for the Python numbers of a loop's state, since a graph has only arrays. Beside a tensor a weak symbol takes
the tensor's dtype, as the number would (NEP 50), so that `x * i` has the dtype that it has in Python.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, final

import numpy as np

from graphs import capture, ops, promotion, surface
from graphs.blocks import Block, Table, enter, innermost
from graphs.builder import Builder
from graphs.dims import Shape, Size
from graphs.errors import ControlFlowError, locate
from graphs.frontends.torch import picking
from graphs.frontends.torch.methods import ABSENT, Count, TorchMethods
from graphs.ir import Node
from graphs.op import Op
from graphs.ops.movement import astype, stop_gradient
from graphs.surface import Surface
from static.trace.views import between, check_shape, decided_value, is_row_major, known_value, present

_OF_NUMBERS = frozenset(name for kind in (int, float) for name in dir(kind) if not name.startswith("_"))

_CONVERT = "let static.jit(..., convert=True) or static.compile(..., convert=True) convert it"
overwriters: list[Callable[[Any, Any], bool]] = []
"""Functions that change a symbol in place to a new value and return True, or return False; they may raise."""


class MissingNameError(ControlFlowError, AttributeError):
    """A name of a tensor that a symbol cannot have; an AttributeError too, so that `hasattr` is false for it."""


class Symbol(TorchMethods, Surface):  # type: ignore[misc]  # max and min are PyTorch's here, not NumPy's
    """Stands for a node of the graph being traced; shows its shape and dtype, never its data.

    A use that needs the data raises ControlFlowError, which names the user's line and a replacement. If the traced
    function catches that error, the end of the trace raises it again, since the function's path cannot depend on
    values. A Symbol has the operators and names of a dynamic engine's tensor, and counts as an instance of its class.
    Where the node stands for an array, an ArraySymbol is made. A weak symbol stands for a Python number:
    `static/trace/symbol.py`.
    """

    __slots__ = ("builder", "node", "weak")
    __class__ = property(lambda self: capture.tensors[0] if capture.tensors else type(self))

    def __new__(cls, builder: Builder, node: Node, weak: bool = False) -> Any:
        """Return an ArraySymbol where the node stands for an array or a number, else a Symbol."""
        return object.__new__(Symbol if node in builder.tensors and not weak else ArraySymbol)

    def __init__(self, builder: Builder, node: Node, weak: bool = False) -> None:
        self.builder = builder
        self.node = node
        self.weak = weak

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        """The sizes, some of which may be symbolic."""
        return self.node.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """The type of the elements."""
        return self.node.spec.dtype

    @property
    def size(self) -> Size:
        """The number of elements, which may be symbolic.

        For an int, `size()` is the shape and `size(dim)` one size, as in PyTorch.
        """
        count, shape = self.node.spec.size, self.node.spec.shape
        return Count(count, shape) if isinstance(count, int) else count

    def __repr__(self) -> str:
        if unconverted_reason() and sys.gettrace() is None:  # a debugger may show it
            raise self._unknown_value_error("a text", "print it after the run, as an output")
        return f"Symbol({self.node.spec})"

    def __bool__(self) -> bool:
        value = self._decided(
            "a Python `if` or `while`, `and` or `or`",
            "choose values with graphs.where(condition, a, b), branches with graphs.cond, and loop with "
            "graphs.while_loop or graphs.scan",
            _CONVERT,
        )
        return bool(value)

    def __float__(self) -> float:
        if self._constant() is None and surface.is_stored():
            raise self._unknown_value_error("an element of a NumPy array", surface.REMEDY)
        return float(self._known("float()", "keep it a tensor", _CONVERT))

    def __int__(self) -> int:
        if self._constant() is None and surface.is_stored():
            raise self._unknown_value_error("an element of a NumPy array", surface.REMEDY)
        return int(self._decided("int()", "keep it a tensor, or pass the number as a static argument"))

    __trunc__ = __int__

    def __index__(self) -> int:
        remedy = "use graphs.take, graphs.fori_loop, or pass the number as a static argument"
        return self._decided("an index or range()", remedy).__index__()

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        return self._known("a NumPy array", "use the functions in graphs")

    def __hash__(self) -> int:
        raise self._unknown_value_error(
            "a set, the key of a dict, or `in` one of them", "compare it with == and use graphs.where"
        )

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._unknown_value_error(f"the format {spec!r}", "print it after the run, as an output")
        return repr(self)

    def item(self) -> Any:
        """Return the one element; in the trace of a step, an element that only a run knows is returned as a symbol.

        Raises ControlFlowError for such an element outside the trace of a step.
        """
        if self._constant() is None and capture.step_trace() is not None:
            return ops.reshape(self, ())
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the elements in nested lists; an element that only a run knows is a symbol. Raises as `item` does."""
        if self._constant() is None and capture.step_trace() is not None:
            return [row.tolist() for row in self] if self.shape else self
        return self.numpy().tolist()

    def numpy(self, **_: Any) -> np.ndarray[Any, Any]:
        """Return the value where it follows from constants alone. Raises ControlFlowError elsewhere."""
        return self._known("item()", "keep it a tensor")

    def _known(self, use: str, instead: str, first: str = "") -> np.ndarray[Any, Any]:
        """Return the value where it follows from constants alone. Raises ControlFlowError elsewhere."""
        if (value := self._constant()) is None:
            raise self._unknown_value_error(use, instead, first)
        return value

    def _decided(self, use: str, instead: str, first: str = "") -> np.ndarray[Any, Any]:
        """Return the value by which Python decides; it may follow from small tensors that are read, too."""
        value = decided_value(self)
        return self._known(use, instead, first) if value is None else value

    def _constant(self) -> np.ndarray[Any, Any] | None:
        """Return the value where it follows from constants alone, else None."""
        return known_value(self)

    def detach(self) -> Any:
        """Return the same value without history; in the trace of a step it shares the symbol's memory."""
        step = capture.step_trace()
        return stop_gradient(self) if step is None else step.data(self)

    @property
    def data(self) -> Any:
        """The same value as `detach()` gives."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        step = capture.step_trace()
        if step is None:
            rule = "data of a tensor in a trace cannot be set: a graph has no memory to exchange"
            raise MissingNameError(locate(f"{rule}; use copy_() on what the function makes"))
        step.assign(self, value)

    def __getattr__(self, name: str) -> Any:
        if self.weak and name in _OF_NUMBERS:
            raise self._unknown_value_error(f"{name} of a Python number", "compute it with graphs")
        if name in REFUSED:
            raise _missing(name)
        remedy = f": {ABSENT[name]}" if name in ABSENT else ""
        raise AttributeError(f"'Symbol' object has no attribute {name!r}{remedy}", name=name, obj=self)

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise self._unknown_value_error("a copy by Python", "call clone(), or keep the tensor itself")

    __copy__ = __reduce_ex__ = __deepcopy__

    def _share(self, view: Any) -> Any:
        """Return a view of this symbol, noted as a view in any layout."""
        self.builder.views.update(between(self.builder, self.node, view.node))
        return view

    def _lie_anyhow(self) -> None:
        """Note that the ops which made this value do not tell how it lies in memory."""
        self.builder.anyhow.add(self.node)

    def _look(self, view: Any) -> Any:
        """Return a view of this symbol in another shape, noted as one.

        Raises ShapeError where arguments that lie row by row have no such view.
        """
        check_shape(self.builder, present(self.builder, self.node), view.shape)
        return self._share(view)

    def contiguous(self, memory_format: Any = None) -> Any:
        """Return the value row by row: the symbol itself, or a copy of what lies otherwise."""
        copy = super().contiguous(memory_format)
        for node in between(self.builder, self.node, copy.node):
            self.builder.copies.discard(node)
            self.builder.doubtful.add(node)
        return copy

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie row by row. Raises MissingNameError where the layout of an argument decides that."""
        if "channels_last" in str(memory_format) or not is_row_major(self.builder, present(self.builder, self.node)):
            raise _missing("is_contiguous")
        return True

    # In the trace of a step -----------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are taken in this tensor. Raises MissingNameError outside the trace of a step."""
        return bool(_stepping("requires_grad", "requires_grad")(self))

    @requires_grad.setter
    def requires_grad(self, _: bool) -> None:
        _stepping("requires_grad", "requires_grad")

    @property
    def requires_grad_(self) -> Callable[..., Any]:
        """A function that returns this symbol. Raises MissingNameError outside the trace of a step."""
        _stepping("requires_grad_", "requires_grad")
        return lambda *_, **__: self

    @property
    def is_leaf(self) -> bool:
        """Always false: a symbol counts as the result of an op. Raises MissingNameError outside the trace of a step."""
        _stepping("is_leaf", "requires_grad")
        return False

    @property
    def grad(self) -> Any:
        """The gradient that backward has left. Raises MissingNameError outside the trace of a training step."""
        return _stepping("grad", "gradient")(self)

    @grad.setter
    def grad(self, gradient: Any) -> None:
        _stepping("grad", "set_gradient")(self, gradient)

    @property
    def backward(self) -> Callable[..., None]:
        """`backward()` of a tensor. Raises MissingNameError outside of the trace of a training step."""
        backward: Callable[..., None] = _stepping("backward", "backward")(self)
        return backward

    # In place -----------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        step = capture.step_trace()
        return self._part(key) if step is None else step.part(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        step = capture.step_trace()
        if step is None:
            if not self._shows(key, value):
                self._assign(self._with_part(value, key))
        else:
            step.set_part(self, key, value)

    def _shows(self, key: Any, value: Any) -> bool:
        """Whether a value is `self[key]` already, as at the end of `self[key] += other`."""
        if not isinstance(value, Symbol) or value.node.inputs[:1] != (present(self.builder, self.node),):
            return False
        part = self._part(key).node
        return (value.node.op, value.node.attrs, value.node.inputs) == (part.op, part.attrs, part.inputs)

    def _part(self, key: Any) -> Any:
        """Return `self[key]` as PyTorch reads it."""
        return picking.part(self, key)

    def _with_part(self, value: Any, key: Any) -> Any:
        """Return a copy with `value` at `self[key]`, as PyTorch reads it."""
        return picking.with_part(self, value, key)

    def _assign(self, result: Any) -> Any:
        """Let the symbol stand for another value of the same spec from now on, like a tensor changed in place."""
        step = capture.step_trace()
        return self._overwrite(result) if step is None else step.assign(self, result)

    def _overwrite(self, result: Any) -> Any:
        """Change the memory of this symbol, under all names that it has, to the value of a result.

        Raises GraphError where the change would be seen outside: for an argument, and inside a branch or a loop.
        """
        for change in reversed(overwriters):  # the conversion of control flow before the trace itself
            if change(self, result):
                break
        return self

    def _become(self, result: Any) -> Any:
        if self.node.is_input:
            raise ControlFlowError(
                locate("the shape of an argument is changed in place, which a graph cannot; use the result instead")
            )
        self.node = result.node
        return self

    def _forget(self) -> Any:
        return self._assign(self.detach())

    def _before(self, *_: Any) -> Any:
        return self

    # Sizes --------------------------------------------------------------------------------------------------------

    def numel(self) -> Size:
        """Return the number of elements, which may be symbolic."""
        return self.node.spec.size

    def _unknown_value_error(self, use: str, instead: str, first: str = "") -> ControlFlowError:
        """Return the error for a use that needs the value.

        `first` is the remedy named first, unless a conversion has failed.
        """
        remedies = ", ".join(remedy for remedy in (unconverted_reason() or first, instead) if remedy)
        error = ControlFlowError(
            locate(
                f"{self.node.op.name}: {use} needs the value of {self.node.spec}, which is unknown while the graph is "
                f"traced; {remedies}, or run this function in the dynamic engine"
            )
        )
        self.builder.refuse(error)
        return error


@final
class ArraySymbol(Symbol):
    """Stands for an array, or for a number: names that NumPy and PyTorch define differently follow NumPy."""

    __slots__ = ()
    __class__ = property(type)

    def _part(self, key: Any) -> Any:
        """Return `self[key]` as NumPy reads it."""
        return ops.index(self, key)

    def _with_part(self, value: Any, key: Any) -> Any:
        """Return a copy with `value` at `self[key]`, as NumPy reads it."""
        return ops.setitem(self, value, key)


for _name in [name for name in vars(TorchMethods) if name.startswith("__i")]:
    setattr(ArraySymbol, _name, lambda *_: NotImplemented)
_offered = {*dir(TorchMethods)}.difference(dir(object), vars(Symbol))
for _name, _method in vars(Surface).items():
    if callable(_method) and _name in _offered:
        setattr(ArraySymbol, _name, _method)
for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__setitem__"):
    setattr(ArraySymbol, _name, vars(Surface)[_name])
ArraySymbol.__name__ = ArraySymbol.__qualname__ = "Symbol"  # as messages call both
ArraySymbol.__hash__ = Symbol.__hash__  # type: ignore[method-assign]

_HOOK = "gradients are a part of the graph, and nothing is called when they pass"
_GRADIENT = "use static.value_and_grad, or torch.autograd.grad inside of the function"
_LATER = "ask it of what the compiled function returns"
REFUSED: dict[str, tuple[str, str]] = {
    "backward": ("a graph has no tape", _GRADIENT),
    "grad": ("a graph keeps no gradients beside its values", _GRADIENT),
    "retain_grad": ("a graph keeps no gradients beside its values", _GRADIENT),
    "register_hook": (_HOOK, _GRADIENT),
    "register_post_accumulate_grad_hook": (_HOOK, _GRADIENT),
    "requires_grad": ("what is differentiated is said by a transform", _GRADIENT),
    "requires_grad_": ("what is differentiated is said by a transform", _GRADIENT),
    "is_leaf": ("a graph has no tape, and so no leaves", _GRADIENT),
    "grad_fn": ("a graph has no tape", "look at static.trace(f, ...)"),
    "is_contiguous": (
        "how an argument, and what is computed from it, lies in memory is known in each call alone",
        "call contiguous(), which is for nothing where it lies so",
    ),
    "stride": ("how a value lies in memory is decided when the graph is compiled", _LATER),
}
"""Names of a tensor that its symbol cannot have: for each the reason, and the replacement."""


def _missing(name: str) -> MissingNameError:
    why, instead = REFUSED[name]
    return MissingNameError(locate(f"{name} of a tensor in a trace: {why}; {instead}"))


def _stepping(name: str, asked: str) -> Any:
    """Return the answer of the running step's trace for a name. Raises MissingNameError where it has none."""
    answer = getattr(capture.step_trace(), asked, None)
    if answer is None:
        raise _missing(name)
    return answer


Callee = Callable[[Any], Any]
Reason = Callable[[], str]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.conversions: Table[tuple[Callee, Reason] | None] = {}


_thread = _Thread()


class converts(Block):  # noqa: N801
    """Inside the block the engine calls `callee(f)` in place of a function f that it was given.

    `reason` says why the code that runs now is not converted, and what to do about it.
    """

    def __init__(self, callee: Callee, reason: Reason) -> None:
        self._conversion = callee, reason

    def __enter__(self) -> None:
        enter(_thread.conversions, self.hold(), self._conversion)


def callee(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function to call in place of one that the engine was given."""
    conversion = innermost(_thread.conversions, None)
    return f if conversion is None else conversion[0](f)


def unconverted_reason() -> str:
    """Return why the code that runs now is not converted, and what to do; "" where no conversion runs."""
    conversion = innermost(_thread.conversions, None)
    return "" if conversion is None else conversion[1]()


def is_weak(value: Any) -> bool:
    """Whether a value is a Python number, or stands for one."""
    return value.weak if isinstance(value, Symbol) else promotion.is_scalar(value)


def beside(op: Op, args: Sequence[Any]) -> Sequence[Any]:
    """Return the arguments, with each weak symbol cast to the dtype that a Python number takes beside the others."""
    if op.family != "elementwise" or not [arg for arg in args if isinstance(arg, Symbol) and arg.weak]:
        return args
    strong = [arg for arg in args if not is_weak(arg)]
    return (
        [_cast_weak(arg, strong) if isinstance(arg, Symbol) and arg.weak else arg for arg in args] if strong else args
    )


def _cast_weak(symbol: Symbol, strong: Sequence[Any]) -> Any:
    dtype = promotion.scalar_dtype(symbol.dtype.type(0).item(), strong)
    return symbol if symbol.dtype == dtype else astype(symbol, dtype)


# Python's operators on two numbers give a number. The first list gives ints for two bools, the second gives bools.
_ARITHMETIC = (
    "add sub mul truediv floordiv mod pow lshift rshift radd rsub rmul rtruediv rfloordiv rmod rpow rlshift rrshift"
)
_OF_INTS = [f"__{name}__" for name in f"{_ARITHMETIC} neg pos abs invert round".split()]
_OF_BOOLS = [f"__{name}__" for name in ("and", "or", "xor", "rand", "ror", "rxor", "eq", "ne", "lt", "le", "gt", "ge")]


def _operator(name: str) -> Callable[..., Any]:
    operator, of_tensors = getattr(Surface, name), getattr(Symbol, name)
    of_ints = name in _OF_INTS

    @functools.wraps(operator)
    def method(self: Symbol, *others: Any) -> Any:
        if self.weak and any(type(other) is Symbol for other in others):
            return of_tensors(self, *others)
        if not (self.weak and all(map(is_weak, others))):
            return operator(self, *others)
        result = operator(*(map(_int, (self, *others)) if of_ints else (self, *others)))
        return Symbol(result.builder, result.node, weak=True) if isinstance(result, Symbol) else result

    return method


def _int(value: Any) -> Any:
    return astype(value, np.int64) if isinstance(value, Symbol) and value.dtype == np.bool_ else value


for _variable in (*_OF_INTS, *_OF_BOOLS):
    setattr(ArraySymbol, _variable, _operator(_variable))
