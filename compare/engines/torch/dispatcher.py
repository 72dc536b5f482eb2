"""What PyTorch's dispatcher sees in a step: its ops, their random numbers, and the user's line of each.

The dispatcher shows the ops of both passes, below autograd's decompositions. The profiler shows which ops of a call
run outside of Dynamo's compiled code.

An op of the forward pass belongs to the innermost line of the user's that runs. Autograd numbers the nodes of the
backward pass as the forward pass makes them: a node, and the ops that it runs, belong to the line whose op got its
number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import numpy as np
import optree

from compare.engines.nudge import rounding_anew
from compare.engines.step import BoundCall, LineOp, bind_call
from compare.engines.torch.state import array
from compare.errors import UnsupportedError, is_users
from compare.records.cells import LineCost
from compare.records.own import RanOp

_PLAIN: Mapping[str, Callable[..., Any]] = {
    "normal": lambda drawn, mean, std=1.0: (drawn - mean) / np.where(np.equal(std, 0), 1.0, std),
    "uniform_": lambda drawn, low=0.0, high=1.0: (drawn - low) / ((high - low) or 1.0),
    "normal_": lambda drawn, mean=0.0, std=1.0: (drawn - mean) / (std or 1.0),
    "exponential_": lambda drawn, rate=1.0: drawn * rate,
}
"""The inverse of each draw's numbers, such as its mean: it gives numbers of the plain distribution."""


@contextmanager
def watching(note: Callable[[Any, Any, Any, Any], Any]) -> Iterator[None]:
    """A context in which `note(op, args, options, result)` sees each op, and replaces its result unless it is None.

    The ops of compiled code that it runs through the dispatcher are seen as well. An op of functions, such as
    `torch.cond`, is not seen, nor what runs in it.
    """
    from torch._ops import OpOverload
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        supports_higher_order_operators = True

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            options = kwargs or {}
            result = op(*args, **options)
            instead = note(op, args, options, result) if isinstance(op, OpOverload) else None
            return result if instead is None else instead

    with Watch():
        yield


def _is_drawn(op: Any) -> bool:
    import torch

    return torch.Tag.nondeterministic_seeded in op.tags


def draws(step: Callable[..., Any], call: tuple[Any, ...]) -> list[np.ndarray]:
    """Return the result of each op that draws, in order: uniform in 0 to 1, standard normal, masks, integers."""
    import torch

    drawn = list[np.ndarray]()

    def note(op: Any, args: Any, _: Any, result: Any) -> None:
        in_backward = torch._C._current_graph_task_id() != -1  # a checkpoint repeats the draws of the forward pass
        if _is_drawn(op) and not in_backward:
            last = result[-1] if isinstance(result, tuple) else result
            name = op.overloadpacket.__name__
            options = args[1:] if name.endswith("_") else args  # the first is what is filled
            numbers = [array(arg) if isinstance(arg, torch.Tensor) else arg for arg in options if type(arg) is not list]
            drawn.append(np.array(_PLAIN[name](array(last), *numbers) if name in _PLAIN else array(last)))

    with watching(note):
        step(*call)
    return drawn


def noting(drawn: list[Any]) -> AbstractContextManager[None]:
    """Return a context that appends the result of each op that draws to `drawn`, with those of backward passes."""

    def note(op: Any, _: Any, __: Any, result: Any) -> None:
        if _is_drawn(op):
            drawn.append(result.clone() if _gives_numbers_alone(op) else None)

    return watching(note)


@contextmanager
def giving(drawn: Sequence[Any]) -> Iterator[None]:
    """A context in which each op that draws gives the noted numbers, in order, in the op's present dtype.

    Raises UnsupportedError where another number of ops draws, or other shapes, and for an op whose result is not only
    its random numbers: the result of a dropout in one op depends on its argument.
    """
    left = list(drawn)

    def give(op: Any, _: Any, __: Any, result: Any) -> Any:
        if not _is_drawn(op):
            return None
        numbers = left.pop(0) if left else None
        if numbers is None or numbers.shape != result.shape:
            raise UnsupportedError(f"in float64 {op} cannot draw the same random numbers")
        return result.copy_(numbers)

    with watching(give):
        yield
    if left:
        raise UnsupportedError("in float64 it draws fewer random numbers")


def round_results(seed: int) -> AbstractContextManager[None]:
    """Return a context in which each op of both passes rounds its new results in another way.

    An op that changes a tensor in place, gives a view, or draws, gives what it gives.
    """
    import torch

    move = rounding_anew(seed)

    def note(op: Any, args: Any, options: Any, result: Any) -> None:
        aliases = any(each.alias_info is not None for each in (*op._schema.arguments, *op._schema.returns))
        made = _tensors(result)
        if aliases or _is_drawn(op) or not any(each.is_floating_point() for each in made):
            return
        try:
            wide = _tensors(op(*_in_doubles(args), **_in_doubles(options)))
        except Exception:  # noqa: BLE001  (an op that does not take float64 there tells nothing)
            return
        for ours, exact in zip(made, wide, strict=True):
            if ours.is_floating_point() and ours.layout is torch.strided and ours.shape == exact.shape:
                other = None if ours.dtype is torch.float64 else array(exact)
                ours.copy_(torch.from_numpy(move(array(ours), other, torch.finfo(ours.dtype).eps)))

    return watching(note)


def _in_doubles(tree: Any) -> Any:
    """Return arguments of an op with tensors of floats, and words for dtypes of floats, in float64."""
    import torch

    def widen(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.double() if leaf.is_floating_point() else leaf
        return torch.float64 if isinstance(leaf, torch.dtype) and leaf.is_floating_point else leaf

    return optree.tree_map(widen, tree, none_is_leaf=True)


def _gives_numbers_alone(func: Any) -> bool:
    """Return whether an op gives one tensor of random numbers only, new or in place of its first argument."""
    import torch

    name, _, overload = func.name().partition(".")
    schema = torch._C._get_schema(name, overload)
    changes = [argument.name for argument in schema.arguments if argument.is_write]
    return len(schema.returns) == 1 and changes in ([], ["self"], ["out"])


# Counts of ops --------------------------------------------------------------------------------------------------------


def ran(step: Callable[..., Any], call: tuple[Any, ...]) -> list[RanOp]:
    """Return the ops of a call, in order; `torch.utils.flop_counter` gives the flops of products."""
    ops: list[RanOp] = []

    ready = bind_call(step, call)
    with ready.within(), watching(lambda *each: ops.append(_count_op(*each))):
        ready.run()
    return ops


def dtypes(step: Callable[..., Any], call: tuple[Any, ...]) -> set[str]:
    """Return the dtypes of the results of a call's ops."""
    seen: set[str] = set()

    def note(_: Any, __: Any, ___: Any, result: Any) -> None:
        seen.update(str(tensor.dtype).removeprefix("torch.") for tensor in _tensors(result))

    with watching(note):
        step(*call)
    return seen


def _count_op(op: Any, args: Any, kwargs: dict[str, Any], out: Any) -> RanOp:
    import torch
    from torch.utils.flop_counter import flop_registry

    if op.is_view:
        return RanOp("view")
    if op.overloadpacket is torch.ops.aten._local_scalar_dense:  # item(), bool() and float() run this op
        return RanOp("read")
    made = _tensors(out)
    elements, moved = sum(tensor.numel() for tensor in made), _bytes(made) + _bytes(_tensors(args))
    count = flop_registry.get(op.overloadpacket)
    if count is None:
        return RanOp("other", elements, moved)
    return RanOp("product", elements, moved, int(count(*args, **kwargs, out_val=out)))


def _tensors(tree: Any) -> list[Any]:
    import torch

    return [leaf for leaf in optree.tree_leaves(tree, none_is_leaf=True) if isinstance(leaf, torch.Tensor)]


def _bytes(tensors: list[Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


# Ops by line ----------------------------------------------------------------------------------------------------------


class OutsideOps:
    """The ops of forward passes that run outside of compiled graphs, by the user's line; of an eager call all do.

    A view computes nothing, and is no op. The seconds of an op include the Python before it, and what watching costs.
    """

    def __init__(self) -> None:
        self._costs: dict[str, LineCost] = {}
        self._last = 0.0

    def of_call(self, call: BoundCall) -> dict[str, LineCost]:
        """Return the ops of a call; those of no line of the user's have the line ""."""
        self._costs, self._last = {}, perf_counter()
        with call.within(), watching(self._note):
            call.run()
        return self._costs

    @contextmanager
    def without_graph(self) -> Iterator[None]:
        """A context of a graph, whose seconds are those of no op after it."""
        yield
        self._last = perf_counter()

    def _note(self, op: Any, _: Any, __: Any, ___: Any) -> None:
        """Count an op, but no view and no mark for a profiler; their seconds count."""
        import torch

        if torch._C._current_graph_task_id() == -1 and (line := _line_outside()) is not None:
            cost = self._costs.setdefault(line, LineCost())
            cost.kernels += not (op.is_view or op.namespace == "profiler")
            cost.seconds += perf_counter() - self._last
        self._last = perf_counter()


def outside(call: BoundCall) -> int:
    """Return how many ops of the forward pass run outside of compiled graphs; of an eager call all do."""
    return sum(cost.kernels for cost in OutsideOps().of_call(call).values())


ENTERS = "do not trace Dynamo-compiled graph"
"""Dynamo's reason for what it calls a graph through, whatever the backend has made of that."""
COMPILERS = (
    "_functorch/_aot_autograd", "_inductor", "export/pt2_archive", "_dynamo/convert_frame.py", "autograd/__init__.py"
)  # fmt: skip
"""The places in PyTorch of what runs graphs, loads or makes them, or starts a backward pass by its first gradient."""


@cache
def _is_compilers(file: str) -> bool:
    import torch

    return file.startswith(tuple(str(Path(torch.__file__).parent / place) for place in COMPILERS))


def _line_outside() -> str | None:
    """Return the innermost line of the user's that runs, `model.py:12`, or ""; None in a graph or a compiler."""
    frame: FrameType | None = sys._getframe(1)
    line = ""
    while frame is not None:
        code = frame.f_code
        if _is_compilers(code.co_filename) or (
            code.co_name == "_fn" and getattr(frame.f_locals.get("self"), "msg", None) == ENTERS
        ):
            return None
        if not line and _is_users(code.co_filename):
            line = f"{Path(code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return line


_is_users = cache(is_users)


def ops(step: Callable[..., Any], call: tuple[Any, ...], wait: Callable[[Any], None]) -> list[LineOp]:
    """Return the ops of one call, in order; `wait(result)` returns when an op's result is computed.

    The time for recording an op is not counted.
    """
    import torch

    recorder = _LineRecorder(wait)
    with torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda tensor: tensor), watching(recorder.note):
        step(*call)
    return recorder.ops


class _LineRecorder:
    """Records the ops that run; of their results it keeps only addresses."""

    def __init__(self, wait: Callable[[Any], None]) -> None:
        import torch

        self.ops: list[LineOp] = []
        self.wait = wait
        self._line_of_node: dict[int, str] = {}
        self._made_by: dict[int, tuple[LineOp, int]] = {}
        self._numbered = torch.autograd._get_sequence_nr()
        self._last = perf_counter()

    def note(self, op: Any, args: Any, options: Any, out: Any) -> None:
        """Record an op: its line, its seconds, and the arrays that it makes."""
        import torch

        self.wait(out)
        seconds = perf_counter() - self._last
        line = self._line()
        number = torch.autograd._get_sequence_nr()
        self._line_of_node |= dict.fromkeys(range(self._numbered, number), line)
        self._numbered = number
        ran = LineOp(line, seconds)
        self.ops.append(ran)
        before = set() if op.is_view else {_address(tensor) for tensor in _strided_tensors((args, options))}
        for tensor in () if op.is_view else _strided_tensors(out):
            if (address := _address(tensor)) not in before:
                ran.made += tensor.nbytes
                self._made_by[address] = ran, tensor.nbytes
        self._last = perf_counter()

    def _line(self) -> str:
        """Return the line of the present op; in backward, an op without a node's line has that of the op before."""
        import torch

        node = torch._C._current_autograd_node()
        if node is None:
            return _users_line()
        return self._line_of_node.get(node._sequence_nr(), self.ops[-1].line if self.ops else "")

    def keep(self, tensor: Any) -> Any:
        """Count a tensor as kept for the backward pass, once per address."""
        began = perf_counter()
        made = self._made_by.pop(_address(tensor), None)
        if made is not None:
            ran, nbytes = made
            ran.saved += 1
            ran.saved_bytes += nbytes
        self._last += perf_counter() - began
        return tensor


def _strided_tensors(tree: Any) -> list[Any]:
    import torch

    return [tensor for tensor in _tensors(tree) if tensor.layout is torch.strided]


def _address(tensor: Any) -> int:
    import torch

    return int(tensor.untyped_storage().data_ptr()) if tensor.layout is torch.strided else 0


def _users_line() -> str:
    """Return the innermost line of the step in a user's file, `model.py:12`; "" where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not ops.__code__:
        if _is_users(frame.f_code.co_filename):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
