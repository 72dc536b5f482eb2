"""L-BFGS: steps by an estimate of the curvature from the last gradients and steps.

A line search for a step that lowers the function enough and flattens its slope: the strong Wolfe conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynamic.grad_mode import enable_grad, no_grad
from dynamic.inplace import assign
from dynamic.optim.optimizer import Group, Optimizer
from dynamic.tensor import wrap
from graphs import capture
from graphs.errors import ArgumentError, OptionError, locate

__all__ = ["LBFGS"]


Vector = np.ndarray[Any, Any]
FLATTEST = 1e-10  # a pair of less curvature along the step is not kept


class LBFGS(Optimizer):
    """Limited-memory BFGS (Liu and Nocedal, 1989) of all parameters as one vector, in one group.

    A step calls its closure, which computes loss and gradients anew, up to `max_eval` times. The state, that of the
    first parameter, has PyTorch's names: "old_dirs" are changes of the gradient, "old_stps" the steps that made them.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        defaults = {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        defaults.update(tolerance_grad=tolerance_grad, tolerance_change=tolerance_change, history_size=history_size)
        super().__init__(params, {**defaults, "line_search_fn": line_search_fn})

    def check(self, group: Group) -> None:
        """Raise OptionError for a second group, and for a line search that is not there."""
        if self.param_groups:
            raise OptionError(locate("LBFGS takes all parameters in one group, with the same options; join them"))
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise OptionError(locate(f"LBFGS: line_search_fn is None or 'strong_wolfe', not {search!r}; choose one"))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to `max_iter` steps; the loss before them. Raises ArgumentError without a closure."""
        if (trace := capture.step_trace()) is not None:
            return trace.step(self, closure)
        if closure is None:
            raise ArgumentError(locate("LBFGS.step: it computes the loss again and again; give a closure that does"))
        with no_grad():
            return self._steps(closure)

    def _steps(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state: dict[str, Any] = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with enable_grad():
            loss = closure()
        value, gradient, evals = float(loss), self._gradient(), 1
        state["func_evals"] += 1
        if _largest(gradient) <= group["tolerance_grad"]:
            return loss
        for count in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = _direction(state, gradient, group["history_size"])
            length = group["lr"] * (min(1.0, 1 / np.abs(gradient).sum()) if state["n_iter"] == 1 else 1)
            before = LinePoint(0, value, gradient, gradient @ direction)
            state.update(d=wrap(direction), t=float(length), prev_flat_grad=wrap(gradient), prev_loss=value)
            if before.slope > -group["tolerance_change"]:
                break
            after, looked = self._line_search(closure, before, direction, length, group, evals, count)
            value, gradient, evals = after.value, after.gradient, evals + looked
            state["t"], state["func_evals"] = float(after.at), state["func_evals"] + looked
            if evals >= group["max_eval"] or _is_done(before, after, direction, group):
                break
        return loss

    def _line_search(
        self, closure: Callable[[], Any], before: LinePoint, direction: Vector, length: Any, group: Group, evals: int,
        count: int,
    ) -> tuple[LinePoint, int]:  # fmt: skip
        """Search along the direction; returns the point reached, and how often the loss was computed."""

        def evaluate() -> tuple[float, Vector]:
            with enable_grad():
                value = float(closure())
            return value, self._gradient()

        if group["line_search_fn"] is None:
            self._add(length, direction)
            if count == group["max_iter"]:  # nobody needs the gradient there
                return before._replace(at=length), 0
            value, gradient = evaluate()
            return LinePoint(length, value, gradient, None), 1

        places = [param._data.copy() for param in group["params"]]

        def point_at(at: Any) -> LinePoint:
            self._add(at, direction)
            value, gradient = evaluate()
            for param, place in zip(group["params"], places, strict=True):
                assign(param, wrap(place))
            return LinePoint(at, value, gradient, gradient @ direction)

        most = group["max_eval"] - evals
        after, looked = search(point_at, before, length, _largest(direction), group["tolerance_change"], most)
        self._add(after.at, direction)
        return after, looked

    def _gradient(self) -> Vector:
        """The gradients of all parameters as one vector; 0 where there is none."""
        params = self.param_groups[0]["params"]
        return np.concatenate([np.ravel(np.zeros_like(p._data) if p.grad is None else p.grad._data) for p in params])

    def _add(self, length: Any, direction: Vector) -> None:
        start = 0
        for param in self.param_groups[0]["params"]:
            data = param._data
            part = direction[start : start + data.size].reshape(data.shape)
            assign(param, wrap(np.asarray(data + length * part, data.dtype)))
            start += data.size


def _largest(vector: Vector) -> Any:
    return np.abs(vector).max()


def _is_done(before: LinePoint, after: LinePoint, direction: Vector, group: Group) -> bool:
    """Whether the gradient vanishes, or the step or the change of the loss is too small to go on."""
    least = group["tolerance_change"]
    short = _largest(direction * after.at) <= least or abs(after.value - before.value) < least
    return bool(_largest(after.gradient) <= group["tolerance_grad"] or short)


def _direction(state: dict[str, Any], gradient: Vector, most: int) -> Vector:
    """The L-BFGS direction: minus the inverse curvature estimate, with the latest pair, times the gradient."""
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return -gradient
    change, step = gradient - state["prev_flat_grad"]._data, state["d"]._data * state["t"]
    curvature = change @ step
    changes, steps, scales = state["old_dirs"], state["old_stps"], state["ro"]
    if curvature > FLATTEST:
        for kept, new in ((changes, wrap(change)), (steps, wrap(step)), (scales, float(1 / curvature))):
            del kept[: max(0, len(kept) - most + 1)]
            kept.append(new)
        state["H_diag"] = float(curvature / (change @ change))
    pairs = [(y._data, s._data, scale) for y, s, scale in zip(changes, steps, scales, strict=True)]
    direction, shares = -gradient, []
    for y, s, scale in reversed(pairs):
        shares.append((s @ direction) * scale)
        direction = direction - shares[-1] * y
    direction = direction * state["H_diag"]
    for y, s, scale in pairs:
        direction = direction + s * (shares.pop() - (y @ direction) * scale)
    return direction


LOWER, FLATTER = 1e-4, 0.9  # the shares of the first slope that the two conditions ask for


class LinePoint(NamedTuple):
    """A place along the line: how far, the value there, the gradient, and its slope along the line."""

    at: Any
    value: Any
    gradient: Any
    slope: Any


def search(
    point_at: Callable[[Any], LinePoint], start: LinePoint, length: float, size: float, tolerance: float, most: int
) -> tuple[LinePoint, int]:
    """A point that meets the conditions, or the best that `most` tries find, and how many points were looked at.

    `length` is the first try, `size` the largest element of the direction; a bracket that moves no element by more than
    the tolerance is not divided further. The algorithm is that of Nocedal and Wright, "Numerical Optimization" (2006),
    3.5 and 3.6, with the safeguards of minFunc, as torch.optim.LBFGS has it.
    """
    with np.errstate(all="ignore"):  # an interpolation that fails is bounded
        before, now, tries = start, point_at(length), 0
        while tries < most:
            worse = _rises(start, now) or (tries > 1 and now.value >= before.value)
            if not worse and _is_flat(start, now):
                return now, tries + 1
            if worse or now.slope >= 0:
                return _zoom(point_at, start, [before, now], (size, tolerance), (tries, most))
            longer = _lowest(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10)
            before, now, tries = now, point_at(longer), tries + 1
        return min(start, now, key=lambda point: point.value), tries + 1


def _rises(start: LinePoint, now: LinePoint) -> bool:
    return bool(now.value > start.value + LOWER * now.at * start.slope)


def _is_flat(start: LinePoint, now: LinePoint) -> bool:
    return bool(abs(now.slope) <= -FLATTER * start.slope)


def _zoom(
    point_at: Callable[[Any], LinePoint],
    start: LinePoint,
    ends: list[LinePoint],
    widths: tuple[float, float],
    tries: tuple[int, int],
) -> tuple[LinePoint, int]:
    """Search within a bracket, whose lower end is the best point so far; returns the point and the number of tries."""
    (size, tolerance), (count, most) = widths, tries
    low, near_an_end = _lower(ends), False
    while count < most:
        first, last = sorted(end.at for end in ends)
        if (last - first) * size < tolerance:
            break
        trial = _lowest(ends[0], ends[1], first, last)
        margin = 0.1 * (last - first)
        if min(last - trial, trial - first) >= margin:
            near_an_end = False
        elif near_an_end or trial >= last or trial <= first:
            trial = last - margin if abs(trial - last) < abs(trial - first) else first + margin
            near_an_end = False
        else:
            near_an_end = True
        now, count = point_at(trial), count + 1
        if _rises(start, now) or now.value >= ends[low].value:
            ends[1 - low] = now
            low = _lower(ends)
            continue
        done = _is_flat(start, now)
        if not done and now.slope * (ends[1 - low].at - ends[low].at) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = now
        if done:
            break
    return ends[low], count + 1


def _lower(ends: list[LinePoint]) -> int:
    return 0 if ends[0].value <= ends[1].value else 1


def _lowest(point: LinePoint, other: LinePoint, least: Any, most: Any) -> Any:
    """Where the cubic through two points, with their slopes, is lowest within bounds; their middle if it is nowhere."""
    first, last = (point, other) if point.at <= other.at else (other, point)
    bend = first.slope + last.slope - 3 * (first.value - last.value) / (first.at - last.at)
    square = bend**2 - first.slope * last.slope
    if not square >= 0:
        return (least + most) / 2
    root = np.sqrt(square)
    share = (last.slope + root - bend) / (last.slope - first.slope + 2 * root)
    return min(max(last.at - (last.at - first.at) * share, least), most)
