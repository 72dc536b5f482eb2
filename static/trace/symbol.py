"""Symbol: a value that is not known yet, while a function is traced to a graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn, final

import numpy as np

from graphs import stores
from graphs.builder import Builder
from graphs.dims import Shape, Size
from graphs.errors import ControlFlowError, located
from graphs.ir import Node
from graphs.ops.movement import stop_gradient
from graphs.surface import Surface
from graphs.torch.methods import Count, TorchNames
from static.trace.converting import unconverted

_OF_NUMBERS = frozenset(name for kind in (int, float) for name in dir(kind) if not name.startswith("_"))

overwriters: list[Callable[[Any, Any], None]] = []
"""What is told of a symbol that is about to be changed in place, and by what; it may raise."""


@final
class Symbol(Surface, TorchNames):  # type: ignore[misc]  # max and min are NumPy's here, not PyTorch's
    """Stands for a node of the graph being traced; shows its shape and dtype, never its data.

    Asking for the data raises ControlFlowError, naming the user's line and what to write instead. A function that
    catches it is refused with it when its trace ends: the path that it took does not depend on values.
    A weak symbol stands for a Python number: `static/trace/weak.py`.
    """

    __slots__ = ("builder", "node", "weak")

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
        """The number of elements, which may be symbolic; if not, `size()` is the shape, `size(dim)` one size."""
        count, shape = self.node.spec.size, self.node.spec.shape
        return Count(count, shape) if isinstance(count, int) else count

    def __repr__(self) -> str:
        if unconverted() and sys.gettrace() is None:  # a debugger may show it
            raise self._unknown("a text", "print it after the run, as an output")
        return f"Symbol({self.node.spec})"

    def __bool__(self) -> NoReturn:
        raise self._unknown(
            "a Python `if` or `while`, `and` or `or`",
            "choose values with graphs.where(condition, a, b), branches with graphs.cond, and loop with "
            "graphs.while_loop or graphs.scan",
            "let static.jit(..., convert=True) or static.compile(..., convert=True) convert it",
        )

    def __float__(self) -> NoReturn:
        if stores.is_stored():
            raise self._unknown("an element of a NumPy array", stores.REMEDY)
        raise self._unknown("float()", "keep it a tensor")

    def __int__(self) -> NoReturn:
        if stores.is_stored():
            raise self._unknown("an element of a NumPy array", stores.REMEDY)
        raise self._unknown("int()", "keep it a tensor, or pass the number as a static argument")

    __trunc__ = __int__

    def __index__(self) -> NoReturn:
        raise self._unknown(
            "an index or range()",
            "use graphs.take, graphs.fori_loop, or pass the number as a static argument",
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise self._unknown("a NumPy array", "use the functions in graphs")

    def __hash__(self) -> int:
        raise self._unknown("a set, the key of a dict, or `in` one of them", "compare it with == and use graphs.where")

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._unknown(f"the format {spec!r}", "print it after the run, as an output")
        return repr(self)

    def item(self) -> NoReturn:
        """Always raises ControlFlowError."""
        raise self._unknown("item()", "keep it a tensor")

    tolist = numpy = item

    def _assign(self, result: Any) -> Any:
        """Stand for another value of the same spec from now on, as a tensor does that is changed in place.

        Raises GraphError where others would see that: for an argument, and inside a branch or a loop. Whoever reads
        the same memory under another name afterwards is refused.
        """
        for note in overwriters:
            note(self, result)
        self.node = result.node
        return self

    def detach(self) -> Any:
        """The same value, a constant for differentiation."""
        return stop_gradient(self)

    data = property(detach)

    def __getattr__(self, name: str) -> Any:
        if self.weak and name in _OF_NUMBERS:
            raise self._unknown(f"{name} of a Python number", "compute it with graphs")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise self._unknown("a copy by Python", "call clone(), or keep the tensor itself")

    __copy__ = __reduce_ex__ = __deepcopy__

    def _unknown(self, use: str, instead: str, first: str = "") -> ControlFlowError:
        """The error for a use that needs the value. `first` is what to try before, unless a conversion has failed."""
        remedies = ", ".join(remedy for remedy in (unconverted() or first, instead) if remedy)
        error = ControlFlowError(
            located(
                f"{self.node.op.name}: {use} needs the value of {self.node.spec}, which is unknown while the graph is "
                f"traced; {remedies}, or run this function in the dynamic engine"
            )
        )
        self.builder.refuse(error)
        return error
