"""Functions with a backward of the user's own: `torch.autograd.Function`.

A call is one node of the tape, whose rule calls `backward` once, with the cotangents of all results. Where there are
several results the node stands for all of them, and each is a node that hands it its cotangent. In a trace a call is
one node too: the tracer keeps what `ctx` holds beside it, and calls `backward` on symbols.
"""

from __future__ import annotations

import copy
import functools
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dynamic import grad_mode, inplace
from dynamic.node import Leaf, Node
from dynamic.tensor import Tensor, wrap
from graphs import dims, dispatch, reverse
from graphs.dims import Shape
from graphs.errors import NotDifferentiableError, ShapeError, locate
from graphs.op import Op, PartCotangents
from graphs.ops.movement import identity, stop_gradient
from graphs.spec import TensorSpec, broadcast_shapes, spec_of
from graphs.surface import Surface


class Context:
    """The values that `forward` keeps for `backward`; any attribute may be set. Each backward gets a copy."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self._saved: tuple[Any, ...] = ()
        self._plain: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._fills = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, which must not change in place until backward: that is an InplaceError."""
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Do nothing: there is no forward-mode differentiation that would read the tensors."""

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`."""
        return self._saved

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare results without a gradient; int results have none anyway."""
        self._plain = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare inputs that forward has changed in place and returns: they get the history of this call."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether a cotangent that no gradient has reached is zeros, the default, or None."""
        self._fills = value


class _SavedTensor:
    """A tensor saved at the end of forward; a result is saved by its number, or the call would hold itself."""

    def __init__(self, tensor: Any, outputs: Sequence[Any]) -> None:
        self.number = _numbers(outputs).get(id(tensor))
        self.data, self.edge = tensor._data, None if self.number is not None else tensor._edge

    def tensor(self, call: _Call) -> Tensor:
        """The tensor, with a history only in graphs whose gradients can still be asked for."""
        if self.number in call.with_gradient:
            return call.result(self.number, self.data)
        return wrap(self.data, None if type(self.edge) is Leaf and self.edge.closed else self.edge)


class _Call:
    """One call of a Function: the class, its context, arguments and results. `node` is its recorded node."""

    node: weakref.ref[Node]

    def __init__(self, kind: type[Function], ctx: Context, args: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.kind, self.ctx, self.count = kind, ctx, len(args)
        self.inputs = {i: spec_of(arg) for i, arg in enumerate(args) if isinstance(arg, Surface)}
        self.specs = [spec_of(out) if isinstance(out, Surface) else None for out in outputs]
        plain = [*map(id, ctx._plain)]
        numbers = sorted(_numbers(outputs).values())
        self.with_gradient = [i for i in numbers if _is_float(outputs[i]) and id(outputs[i]) not in plain]

    # On the tape ------------------------------------------------------------------------------------------------

    def record(self, inputs: Sequence[Tensor], outputs: Sequence[Any]) -> None:
        """Give the results the history of this call, if any input requires a gradient."""
        self.only = len(self.with_gradient) == 1
        value = outputs[self.with_gradient[0]]._data
        applied = _applied[bool(self.ctx._saved)]
        node = applied.apply([value if self.only else np.zeros((), value.dtype), *inputs], {"call": self})._edge
        if node is None:
            return
        self.node = weakref.ref(node)
        self.saved = [_SavedTensor(t, outputs) if issubclass(type(t), Tensor) else t for t in self.ctx._saved]
        self.ctx._saved = ()
        for number in self.with_gradient:
            out = outputs[number]
            edge = node if self.only else self.result(number, out._data)._edge
            inplace.adopt(out, edge, changed=any(out is tensor for tensor in inputs))
        self.time = inplace.clock.tick()

    def result(self, number: int, data: Any) -> Tensor:
        """A result of the call as a tensor with its history."""
        node = self.node()
        if self.only:
            return wrap(data, node)
        made: Tensor = _result.apply(
            [wrap(np.zeros((), data.dtype), node)], {"call": self, "number": number, "value": data}
        )
        return made

    def pulled(self, g: Any) -> Sequence[Any]:
        """Call `backward` with the cotangents of the results: one cotangent, or several by number."""
        parts = g if isinstance(g, PartCotangents) else {self.with_gradient[0]: g}
        again = any(issubclass(type(part), Tensor) for part in parts.values())
        held = [t.data for t in self.saved if isinstance(t, _SavedTensor)]
        inplace.check_unchanged(self.kind.__name__, held, self.time)
        with grad_mode.recording(again and grad_mode.is_grad_enabled()):
            saved = tuple([t.tensor(self) if isinstance(t, _SavedTensor) else t for t in self.saved])
            tensors = {i: part if again else wrap(np.asarray(part)) for i, part in parts.items()}
            gradients = self.gradients({"_saved": saved}, tensors, _zeros)
        return [value if again or not issubclass(type(value), Tensor) else value._data for value in gradients]

    # In a trace ---------------------------------------------------------------------------------------------------

    def trace(self, tracer: Any, inputs: Sequence[Any], outputs: list[Any]) -> None:
        """Replace results in `outputs` by symbols with the gradient rule of this call."""
        numbers = _numbers(outputs)
        tensors = [i for i in sorted(numbers.values()) if self.specs[i] is not None]

        def pull(state: Any, cotangents: Sequence[Any], zeros: Any) -> Sequence[Any]:
            return self.gradients(
                state, {i: g for i, g in zip(tensors, cotangents, strict=True) if g is not None}, zeros
            )

        results = tracer.ruled([outputs[i] for i in tensors], inputs, vars(self.ctx), pull)
        with_rule = dict(zip(tensors, results, strict=True))
        for number, out in enumerate(outputs):
            last = numbers[id(out)]
            if any(out is changed for changed in self.ctx._dirty):
                out.node = with_rule[last].node
            elif last in self.with_gradient:
                outputs[number] = with_rule[last]

    # In both engines --------------------------------------------------------------------------------------------

    def gradients(
        self, state: Mapping[str, Any], cotangents: Mapping[int, Any], zeros: Callable[[TensorSpec], Any]
    ) -> Sequence[Any]:
        """The gradients of the tensor arguments, None where there is none, for a context of the given state."""
        ctx = copy.copy(self.ctx)
        vars(ctx).update(state)
        seeds = [
            cotangents[i] if i in cotangents else zeros(spec) if ctx._fills and spec is not None else None
            for i, spec in enumerate(self.specs)
        ]
        returned = dispatch.callee(self.kind.backward)(ctx, *seeds)
        gradients = returned if isinstance(returned, tuple) else (returned,)
        if len(gradients) < self.count:
            raise NotDifferentiableError(
                f"{self.kind.__name__}.backward gave {len(gradients)} gradients for {self.count} "
                "inputs; return one for each, None where there is none"
            )
        return [self._fit_gradient(gradients[i], spec) for i, spec in self.inputs.items()]

    def _fit_gradient(self, gradient: Any, spec: TensorSpec) -> Any:
        """Sum a gradient to the shape of its input. Raises NotDifferentiableError where that is not possible."""
        if gradient is None or not spec.is_float:
            return None
        shape = spec.shape
        if dims.same_shape(_broadcast_shape(shape, gradient.shape), gradient.shape):
            return reverse.conform(gradient, shape, spec.dtype)
        raise NotDifferentiableError(
            f"{self.kind.__name__}.backward gave a gradient of shape {gradient.shape} for an input "
            f"of shape {shape}; sum or reshape it"
        )


def _numbers(outputs: Sequence[Any]) -> dict[int, int]:
    """The number of each result, by its identity: of one that is returned twice, the last, as in PyTorch."""
    return {id(out): number for number, out in enumerate(outputs)}


def _broadcast_shape(shape: Shape, other: Shape) -> Shape:
    try:
        return broadcast_shapes(shape, other)
    except ShapeError:
        return shape


def _zeros(spec: TensorSpec) -> Tensor:
    return wrap(np.zeros(spec.shape, spec.dtype))


def _is_float(value: Any) -> bool:
    return isinstance(value, Surface) and value.dtype.kind == "f"


_applied = [
    Op(
        "function",
        lambda value, *_, **__: value,
        lambda value, *_, **__: value,
        rules=(lambda g, index: g[index - 1],),
        common=lambda g, call: call.pulled(g),
        cost=0,
        family="custom",
        arity=None,
        holds=holds,
        listed=False,
        doc="A user's function: its only result, or what stands for all of them.",
    )
    for holds in (False, True)
]
_result = Op(
    "function_result",
    lambda _, *, value, **__: value,
    lambda _, *, value, **__: spec_of(value),
    rules=(lambda g, number: PartCotangents({number: g}),),
    cost=0,
    family="custom",
    listed=False,
    doc="One of several results of a user's function.",
)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` that is not recorded: differentiating its results raises NotDifferentiableError."""

    @functools.wraps(backward)
    def wrapper(ctx: Context, *cotangents: Any) -> Any:
        with grad_mode.no_grad():
            returned = backward(ctx, *cotangents)
        results = returned if isinstance(returned, tuple) else (returned,)
        seeds = [g for g in cotangents if _is_float(g)]
        return tuple([r if r is None else _once.apply([r, *seeds], {}) for r in results])

    return wrapper


def _refuse_again(_: Any) -> None:
    raise NotDifferentiableError(locate("a gradient of a once_differentiable backward has none; take the mark away"))


_once = Op(
    "once_differentiable",
    lambda x, *_, out=None: identity.kernel(x, out=out),
    lambda x, *_: x,
    rules=(_refuse_again,),
    cost=0,
    family="custom",
    arity=None,
    listed=False,
    doc="A gradient that has none.",
)


class Function:
    """A function with a backward of its own: define `forward(ctx, ...)` and `backward(ctx, ...)`, and call `apply`.

    `backward` gets a cotangent for each result, and returns a gradient for each input, None where there is none.
    `setup_context(ctx, inputs, output)` may stand apart; `forward` then takes no ctx. In a trace both run on symbols,
    and their ops are nodes of the graph.
    """

    @staticmethod
    def forward(*args: Any, **options: Any) -> Any:
        """Compute the results, on tensors without a history."""
        raise NotImplementedError("define forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """Compute the gradients of the inputs."""
        raise NotImplementedError("define backward(ctx, ...)")

    @classmethod
    def apply(cls, *args: Any, **options: Any) -> Any:
        """Run forward, and record it. Raises ControlFlowError in a trace where forward or backward asks for values."""
        tracer = dispatch.tracer()
        before = args if tracer is None else [identity(arg) if isinstance(arg, Surface) else arg for arg in args]
        ctx = dispatch.callee(Context)(tuple(map(_wants_gradient, args)))
        with grad_mode.no_grad():
            results = cls._run(ctx, args, options)
            returned = list(results) if isinstance(results, tuple) else [results]
            passed_on = set(map(id, args)) - set(map(id, ctx._dirty))
            outputs = [
                stop_gradient(out) if isinstance(out, Surface) and id(out) in passed_on else out for out in returned
            ]
        call = _Call(cls, ctx, args, outputs)
        inputs = [before[i] for i in call.inputs]
        if tracer is not None:
            call.trace(tracer, inputs, outputs)
        elif inputs and call.with_gradient:
            call.record(inputs, outputs)
        return tuple(outputs) if isinstance(results, tuple) else outputs[0]

    @classmethod
    def _run(cls, ctx: Context, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        setup, forward = getattr(cls, "setup_context", None), dispatch.callee(cls.forward)
        if setup is None:
            return forward(ctx, *args, **options)
        bound = inspect.signature(cls.forward).bind(*args, **options)
        bound.apply_defaults()
        output = forward(*bound.args, **bound.kwargs)
        dispatch.callee(setup)(ctx, bound.args, output)
        return output


def _wants_gradient(arg: Any) -> bool:
    return arg.requires_grad if issubclass(type(arg), Tensor) else _is_float(arg)


class InplaceFunction(Function):
    """A function that may change its inputs in place, as older programs derive from it; `mark_dirty` names them."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


# The backward hooks of modules ----------------------------------------------------------------------------------------


class _Watch(Function):
    """Passes tensors on; on the way back, `see` gets their cotangents and returns what goes on."""

    @staticmethod
    def forward(ctx: Any, see: Callable[..., Any], fills: bool, *values: Any) -> Any:
        ctx.see = see
        ctx.set_materialize_grads(fills)
        passed = tuple(map(stop_gradient, values))
        plain = [value for value, wants in zip(passed, ctx.needs_input_grad[2:], strict=True) if not wants]
        ctx.mark_non_differentiable(*plain)
        return passed

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return None, None, *ctx.see(cotangents)


def _records(values: Sequence[Any]) -> bool:
    """Whether a call with these values is recorded."""
    return grad_mode.is_grad_enabled() and any(map(_wants_gradient, values))


class WatchedCall:
    """A call of a module with its backward hooks: those `before` the backward of the module, and those `after` it.

    Each is the hook and whether it has named arguments, which a backward hook has not.
    """

    def __init__(self, module: Any, before: Sequence[tuple[Any, bool]], after: Sequence[tuple[Any, bool]]) -> None:
        self._module = module
        self._before, self._after = [hook for hook, _ in before], [hook for hook, _ in after]
        self._cotangents: tuple[Any, ...] = ()
        self._inputs, self._has_gradient = 0, False

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of `forward`; the cotangents of the tensors among them go through the hooks."""
        self._inputs = len(args)
        self._has_gradient = _records(args)
        return self._watched(args, self._leave, fills=True) if self._has_gradient else args

    def result(self, result: Any) -> Any:
        """Return the result of `forward`, a tensor or a tuple; its cotangents go through the hooks."""
        values = result if isinstance(result, (tuple, list)) else (result,)
        if not _records(values):
            return result
        passed = self._watched(values, self._enter, fills=False)
        return passed[0] if values is not result else type(result)(passed)

    def _watched(self, values: Sequence[Any], see: Callable[..., tuple[Any, ...]], *, fills: bool) -> tuple[Any, ...]:
        """Return the values, whose cotangents `see` gets: zeros where none has come if it `fills`, else None."""
        places = [i for i, value in enumerate(values) if isinstance(value, Surface)]

        def see_all(cotangents: Sequence[Any]) -> list[Any]:
            every: list[Any] = [None] * len(values)
            for place, cotangent in zip(places, cotangents, strict=True):
                every[place] = cotangent
            every = list(see(tuple(every)))
            return [every[place] for place in places]

        passed = _Watch.apply(see_all, fills, *(values[place] for place in places))
        replaced = dict(zip(places, passed, strict=True))
        return tuple(replaced.get(i, value) for i, value in enumerate(values))

    def _enter(self, cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self._before:
            cotangents = _hook_result(cotangents, hook(self._module, cotangents))
        self._cotangents = cotangents
        if not self._has_gradient:
            for hook in self._after:
                hook(self._module, (None,) * self._inputs, cotangents)
        return cotangents

    def _leave(self, cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self._after:
            cotangents = _hook_result(cotangents, hook(self._module, cotangents, self._cotangents))
        return cotangents


class _GradientsOfLastNode(tuple[Any, ...]):  # noqa: SLOT001  (a tuple has no room for slots)
    """In the place of the `grad_input` of an older hook, which depends on PyTorch's nodes: a read of it is refused."""

    def _refuse(self, *_: Any) -> Any:
        raise NotDifferentiableError(
            locate(
                "grad_input of register_backward_hook is that of PyTorch's last node; use register_full_backward_hook"
            )
        )

    __getitem__ = __iter__ = __len__ = __repr__ = _refuse


def older_hook(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return the hook for `WatchedCall` of one that PyTorch's `register_backward_hook` takes."""

    def call(module: Any, _: Any, cotangents: tuple[Any, ...]) -> None:
        inputs = _GradientsOfLastNode()
        if hook(module, inputs, cotangents) is not None:
            inputs._refuse()

    return call


def _hook_result(before: tuple[Any, ...], after: Any) -> tuple[Any, ...]:
    """Return what a hook has put in the place of some cotangents. Raises NotDifferentiableError for another number."""
    if after is None:
        return before
    gradients = after if isinstance(after, tuple) else (after,)
    if len(gradients) != len(before):
        raise NotDifferentiableError(
            locate(f"a backward hook gave {len(gradients)} gradients for {len(before)}; return one for each, or None")
        )
    return gradients
