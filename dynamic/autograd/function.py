"""Functions with a backward of the user's own: `torch.autograd.Function`.

Each result of `forward` is a node of the tape. Its rule calls `backward` with that result's cotangent, and zeros for
the other results, which is right since a pullback is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynamic import grad_mode, inplace
from dynamic.tape import wrap
from dynamic.tensor import Tensor
from graphs.errors import ControlFlowError, GraphError, NotDifferentiableError, located
from graphs.op import Op
from graphs.spec import TensorSpec, spec_of


class Context:
    """What `forward` keeps for `backward`; any attribute may be set."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self._saved: tuple[Any, ...] = ()
        self._time = 0

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, which must not change in place until backward: that is an InplaceError."""
        self._saved = tensors
        self._time = inplace.clock.tick()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that were kept."""
        held = [t._data for t in self._saved if isinstance(t, Tensor)]
        inplace.check_unchanged("autograd.Function", held, self._time)
        return self._saved

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Tell of results without a gradient; those of ints have none anyway."""
        self._plain = {id(t) for t in tensors}

    _plain: frozenset[int] | set[int] = frozenset()

    def set_materialize_grads(self, value: bool) -> None:
        """Zeros stand for cotangents that nothing has reached. Raises GraphError where that is not wanted."""
        if not value:
            raise GraphError(located("cotangents that nothing has reached are zeros here, not None; compare with 0"))


class _Call:
    """One call: the class, its context, its results, and how many inputs there were."""

    def __init__(self, kind: type[Function], ctx: Context, specs: list[TensorSpec | None], places: list[int]) -> None:
        self.kind, self.ctx, self.specs, self.places = kind, ctx, specs, places
        self.latest: tuple[Any, int, Any] = (None, 0, None)

    def gradients(self, g: Any, output: int) -> Sequence[Any]:
        """What `backward` gives for the cotangent of an output; asked for once for each input, and computed once."""
        latest = self.latest  # which a backward in another thread may replace
        if latest[0] is not g or latest[1] != output:
            latest = self.latest = g, output, self._pulled(g, output)
        return latest[2]

    def _pulled(self, g: Any, output: int) -> Sequence[Any]:
        again = isinstance(g, Tensor)
        seeds = [None if s is None else wrap(np.zeros(s.shape, s.dtype)) for s in self.specs]
        seeds[output] = g if again else wrap(np.asarray(g))
        with grad_mode.set_grad_enabled(again and grad_mode.is_grad_enabled()):
            returned = self.kind.backward(self.ctx, *seeds)
        gradients = returned if isinstance(returned, tuple) else (returned,)
        if len(gradients) < len(self.ctx.needs_input_grad):
            raise NotDifferentiableError(
                f"{self.kind.__name__}.backward gave {len(gradients)} gradients for {len(self.ctx.needs_input_grad)} "
                "inputs; return one for each, None where there is none"
            )
        return [value if again or not isinstance(value, Tensor) else value._data for value in gradients]


def _rule(g: Any, index: int, shapes: Any, call: _Call, output: int) -> Any:
    gradient = call.gradients(g, output)[call.places[index]]
    if gradient is not None and gradient.shape != shapes[index]:
        raise NotDifferentiableError(
            f"{call.kind.__name__}.backward gave a gradient of shape {gradient.shape} for an input "
            f"of shape {shapes[index]}; sum or reshape it"
        )
    return gradient


def _kernel(*_: Any, value: Any, **__: Any) -> Any:
    return value


def _infer(*_: TensorSpec, value: Any, **__: Any) -> TensorSpec:
    return spec_of(value)


_applied = Op(
    "function",
    _kernel,
    _infer,
    rules=(_rule,),
    cost=0,
    family="custom",
    arity=None,
    listed=False,
    doc="A user's function.",
)


class Function:
    """A function with a backward of its own: define `forward(ctx, ...)` and `backward(ctx, ...)`, and call `apply`.

    `backward` gets a cotangent for each result, and returns a gradient for each input, None where there is none.
    `setup_context(ctx, inputs, output)` may stand apart; `forward` then takes no ctx.
    """

    @staticmethod
    def forward(*args: Any, **options: Any) -> Any:
        """The results, on tensors without a history."""
        raise NotImplementedError("define forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """The gradients of the inputs."""
        raise NotImplementedError("define backward(ctx, ...)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward, and record it. Raises ControlFlowError in a trace: backward is Python that reads values."""
        if any(hasattr(arg, "node") and hasattr(arg, "builder") for arg in args):
            raise ControlFlowError(
                located(
                    f"{cls.__name__}: a backward of your own is Python, and a graph has rules of ops alone; run this "
                    "in the dynamic engine, or give it a rule by graphs.custom_op"
                )
            )
        places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx = Context(tuple([isinstance(arg, Tensor) and arg.requires_grad for arg in args]))
        with grad_mode.no_grad():
            results = cls._run(ctx, args)
        outputs = results if isinstance(results, tuple) else (results,)
        specs = [spec_of(out._data) if isinstance(out, Tensor) else None for out in outputs]
        call = _Call(cls, ctx, specs, places)
        tensors = [args[i] for i in places]
        recorded = [_record(call, out, i, tensors) for i, out in enumerate(outputs)]
        return tuple(recorded) if isinstance(results, tuple) else recorded[0]

    @classmethod
    def _run(cls, ctx: Context, args: tuple[Any, ...]) -> Any:
        setup = getattr(cls, "setup_context", None)
        if setup is None:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        setup(ctx, args, output)
        return output


def _record(call: _Call, out: Any, number: int, inputs: list[Any]) -> Any:
    if not isinstance(out, Tensor) or id(out) in call.ctx._plain or not inputs:
        return out
    return _applied.apply(inputs, {"call": call, "output": number, "value": out._data})
