"""Effects: `print` shows a value while a graph runs, and `breakpoint` stops there. Both return their input.

    h = graphs.print(graphs.tanh(x @ w), "h")        # h: f32[2,2] (model.py:12) ...
    graphs.breakpoint(loss, when=np.isnan)           # Python's debugger, at the first loss that is NaN

The value itself goes on untouched, so that its gradient passes. The effect is a node that reads the value and that no
node reads. Ops with `effect` are kept though nothing depends on them. They run as often as written, in the order of
the user's code: in branches and loop bodies as often as these run. A gradient that computes the inside of a branch or
a step again does not show it a second time. An array that Python has while a graph is traced is shown at that moment,
and not by the graph.
"""

from __future__ import annotations

import copy
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graphs.errors import ControlFlowError, GraphError, user_frame, user_line
from graphs.op import Array, Op, Prepared
from graphs.ops.families import movement
from graphs.ops.shapes import as_operand
from graphs.spec import TensorSpec, spec_of

__all__ = ["breakpoint", "print"]


class Stop(NamedTuple):
    """Where a breakpoint stopped: its label, the user's line (`model.py:12`), and a copy of the value."""

    label: str
    line: str
    value: Array


When = Callable[[Array], Any]
Hook = Callable[[Stop], Any]


def print(x: Array, /, label: str = "", *, gradient: bool = False) -> Array:
    """Show a value, with its label, spec and the user's line, on the standard error stream; returns the value.

    With `gradient` its cotangent is shown too, when the backward pass reaches it.
    """
    x, line = as_operand(x), user_line()
    if gradient:
        x = observe.apply((x,), {"label": label, "line": line})
    print_op.apply((x,), {"label": label, "line": line})
    return x


def breakpoint(x: Array, /, label: str = "", *, when: When | None = None, hook: Hook | None = None) -> Array:
    """Stop where a value has been computed, if `when(array)` holds; returns the value.

    Python's `breakpoint()` is called, or `hook(stop)` with a `Stop`: label, line, value. An error from it ends the run.
    A graph with a breakpoint cannot be saved to a file, since it holds Python functions.
    """
    x = as_operand(x)
    attrs = {"label": label, "line": user_line(), "when": when or _always, "hook": hook or _debug}
    breakpoint_op.apply((x,), attrs)
    return x


# The ops ----------------------------------------------------------------------------------------------------------


def _nothing(out: Array) -> Array:
    return np.empty(0, np.bool_) if out is None else out


def _print(x: Array, *, label: str, line: str, out: Array = None) -> Array:
    """Show the input; the result is empty."""
    where = f" ({line})" if line else ""
    text = np.array2string(x, separator=", ")
    value = f"\n{text}" if "\n" in text else f" {text}"
    sys.stderr.write(f"{label or 'value'}: {spec_of(x)}{where}{value}\n")
    return _nothing(out)


def _stop(x: Array, *, label: str, line: str, when: When, hook: Hook, out: Array = None) -> Array:
    """Call the hook where the condition holds for the input; the result is empty."""
    if np.any(when(x)):
        hook(Stop(label, line, np.array(x)))
    return _nothing(out)


def _require(x: Array, *, label: str, line: str, error: BaseException | None, out: Array = None) -> Array:
    """Raise the user's error, or ControlFlowError, unless all of the input is true; the result is empty."""
    if not np.all(x):
        raise ControlFlowError(label) if error is None else _again(error, line)
    return _nothing(out)


def _again(error: BaseException, line: str) -> BaseException:
    """A copy of an error, since each run raises its own, with a note of the user's line."""
    new = copy.copy(error)
    if line:
        new.add_note(f"raised at {line}")
    return new


def _always(value: Array) -> bool:
    return True


def _debug(stop: Stop) -> None:
    """Do what Python's `breakpoint` does; its own debugger opens in the user's frame, and `down` leads to `stop`."""
    if sys.breakpointhook is not sys.__breakpointhook__ or os.environ.get("PYTHONBREAKPOINT"):
        sys.breakpointhook()  # noqa: T100  (a debugger that the user chose: it opens here, where `stop` is in sight)
        return
    import pdb  # noqa: T100  (it is dear to import, and few programs stop)

    here = sys._getframe()
    frames = [frame for frame, _ in traceback.walk_stack(here)]
    user = user_frame(here)
    debugger = pdb.Pdb()
    debugger.rcLines += [f"up {frames.index(user)}"] if user in frames else []
    debugger.message(f"{stop.label or 'value'} ({stop.line}): {spec_of(stop.value)} {np.array2string(stop.value)}")
    debugger.set_trace(here)  # it stops at the next line of this frame, from which the line above goes up
    return


def _infer_print(x: TensorSpec, *, label: Any, line: Any) -> TensorSpec:
    if not (isinstance(label, str) and isinstance(line, str)):
        raise GraphError("a label is a string; make it one")
    return TensorSpec((0,), np.bool_)


def _infer_require(x: TensorSpec, *, label: Any, line: Any, error: Any) -> TensorSpec:
    if not (error is None or isinstance(error, BaseException)):
        raise GraphError("what a requirement raises is an error; give one, or None")
    return _infer_print(x, label=label, line=line)


def _infer_stop(x: TensorSpec, *, label: Any, line: Any, when: Any, hook: Any) -> TensorSpec:
    if not (callable(when) and callable(hook)):
        raise GraphError("when and hook are functions; give functions, or leave them out")
    return _infer_print(x, label=label, line=line)


def _effect(name: str, kernel: Callable[..., Array], infer: Callable[..., TensorSpec]) -> Op:
    def prepare(x: Array, /, **attrs: Any) -> Prepared:
        return (as_operand(x),), attrs

    return Op(name, kernel, infer, prepare=prepare, cost=0, family="effect", effect=True)


print_op: Op = _effect("print", _print, _infer_print)
require_op: Op = _effect("require", _require, _infer_require)
breakpoint_op: Op = _effect("breakpoint", _stop, _infer_stop)


def _print_cotangent(x: Array, *, label: str, line: str, out: Array = None) -> Array:
    """The same values; their cotangent is printed in the backward pass."""
    if out is None:
        return x.view()
    np.copyto(out, x)
    return out


def _show_gradient(g: Array, label: str, line: str) -> Array:
    print_op.apply((g,), {"label": f"gradient of {label or 'value'}", "line": line})
    return g


observe: Op = movement(
    "observe",
    _print_cotangent,
    lambda x, *, label, line: x,
    lambda g, label, line: _show_gradient(g, label, line),
    prepare=lambda x, /, **attrs: ((as_operand(x),), attrs),
    view=True,
)
