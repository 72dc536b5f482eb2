"""The errors of graphduel: each names the op, the specs, the rule broken, the user's line and the remedy."""

import contextlib
import dis
import functools
import html
import itertools
import linecache
import os
import re
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType

import numpy as np
import optree

_ROOT = Path(__file__).resolve().parent.parent
_OURS = tuple(f"{_ROOT / name}{os.sep}" for name in ("graphs", "static", "dynamic"))
_LIBRARIES = str(Path(np.__file__).parent), str(Path(optree.__file__).parent), contextlib.__file__
GENERATED = "<graph "
"""What the names of files begin with that the code of compiled graphs has."""
_INTERNAL = (*_OURS, *_LIBRARIES, GENERATED)
_PYTHON = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  (as the code of Python's library names its files)
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


class GraphError(RuntimeError):
    """Base of every error the op library and the engines raise on purpose.

    A RuntimeError, which PyTorch raises for most wrong calls and its programs catch; where it or NumPy raises a
    ValueError, a TypeError or an IndexError, an error is that as well. A message is `rule; remedy`. `placed` tells that
    the op and the user's line are already in it.
    """

    placed = False

    def __init__(self, *args: object) -> None:
        super().__init__(*[one_line(arg) if isinstance(arg, str) else arg for arg in args])


class ShapeError(GraphError, ValueError):
    """Shapes, axes or sizes break the rule of an op."""


class OutOfRangeError(ShapeError, IndexError):
    """An index or an axis does not exist; like NumPy's AxisError this is a ValueError and an IndexError."""


class DTypeError(GraphError, TypeError):
    """An op does not take these dtypes."""


class ResultError(DTypeError):
    """The result of a traced function holds text or an object, which a graph cannot give; `placed` by the function."""

    placed = True


class ArgumentError(GraphError, TypeError):
    """An argument is missing, has a name that the function does not know, or is of a kind that it does not take."""


class OptionError(GraphError, ValueError):
    """An option has a value that the function does not take."""


class MissingKeyError(GraphError, KeyError):
    """A name or a key does not exist."""

    __str__ = Exception.__str__  # a KeyError shows the repr of its message


class LinAlgError(GraphError, np.linalg.LinAlgError):
    """A matrix has no such solution or factors: it is singular, not positive definite, not symmetric, or not finite."""


class NotDifferentiableError(GraphError):
    """The requested gradient does not exist, or its residuals were freed."""


class ControlFlowError(GraphError):
    """Python asked for the value of something that is still symbolic while a graph is traced.

    No TypeError: `try: float(x) except TypeError` must not swallow it and bake the fallback into the graph.
    """


class InplaceError(GraphError):
    """A value was changed in place where that makes a gradient wrong."""


class AnomalyError(GraphError, FloatingPointError):
    """An op made NaN or infinity while anomaly detection was on."""


class VerificationError(GraphError, AssertionError):
    """A graph breaks an invariant of the intermediate representation: a bug in a pass or in an op."""


class ArtifactError(GraphError, ValueError):
    """A saved graph is cut off, altered, of another version, or not ours."""


class ShapeLimitError(GraphError):
    """A jitted function was called with more shapes than its limit allows."""


class ShapeLimitWarning(UserWarning):
    """A jitted function was called with many shapes: it has one graph for all of them now, or compiles again."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line."""
    message = one_line(message)
    frame = user_frame()
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, registry=registry)


@functools.lru_cache(maxsize=4096)  # asked for each frame of each op that is traced
def is_internal(filename: str) -> bool:
    """Whether a source file belongs to the engines, NumPy, optree, contextlib or a compiled graph, not to the user."""
    return filename.startswith(_INTERNAL) or filename in _beside


_beside = set[str]()


@functools.lru_cache(maxsize=4096)
def is_of_python(filename: str) -> bool:
    """Whether a source file belongs to Python's own library."""
    return filename.startswith(_PYTHON) and not is_installed(filename)


def is_installed(filename: str) -> bool:
    """Whether a source file belongs to an installed package."""
    return any(folder in filename for folder in _INSTALLED)


def count_as_ours(file: str) -> None:
    """Count a source file as internal from now on: it runs user code for an engine; its lines are not the user's."""
    _beside.add(file)
    is_internal.cache_clear()


def user_frame(start: FrameType | None = None) -> FrameType | None:
    """The innermost frame that runs the user's code, or None when there is none."""
    frame: FrameType | None = start or sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_asked_by_user(*between: str) -> bool:
    """Whether user code called the running functions through the files `between` alone, without other files of ours."""
    frame: FrameType | None = sys._getframe(1)
    passed = (*_INTERNAL[len(_OURS) :], *between)
    while frame is not None and (frame.f_code.co_filename == __file__ or frame.f_code.co_filename.startswith(passed)):
        frame = frame.f_back
    return frame is not None and not frame.f_code.co_filename.startswith(_OURS)


class _InPlace(threading.local):
    line = ""


_in_place = _InPlace()


def put_line(line: str) -> str:
    """Use a text as the user's line in this thread. Returns the text that was used before, "" for none."""
    before, _in_place.line = _in_place.line, one_line(line)
    return before


def user_line(start: FrameType | None = None) -> str:
    """The user's line being run, as `model.py:12`, seen from a frame; empty when no frame is the user's."""
    if _in_place.line:
        return _in_place.line
    frame = user_frame(start or sys._getframe(1))
    while frame is not None and is_of_python(frame.f_code.co_filename):  # as `logging`, which asks for the user
        frame = user_frame(frame.f_back) if frame.f_back else None
    if frame is None:
        return ""
    return f"{_label(frame.f_code.co_filename)}:{frame.f_lineno}"


def definition_line(f: object) -> str:
    """The line where the user defines a function, as `model.py:12`; empty where it has none, or is not the user's."""
    code = getattr(f, "__code__", None)
    return "" if code is None or is_internal(code.co_filename) else f"{_label(code.co_filename)}:{code.co_firstlineno}"


@functools.lru_cache(maxsize=4096)
def _label(filename: str) -> str:
    """The name of a source file, without folders, as user lines show it."""
    return one_line(Path(filename).name)


_CALLEE = re.compile(r"[\w.]+(?=\()")


def user_call() -> str:
    """The callee on the user's running line, as written there (`np.arange`); empty where it is unknown."""
    frame = user_frame(sys._getframe(1))
    if frame is None:
        return ""
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and dis.opname[code[at]] == "CACHE":  # a frame that has called Python code stands behind the call
        at -= 2
    if not dis.opname[code[at]].startswith("CALL"):
        return ""
    line, _, column, _ = next(itertools.islice(frame.f_code.co_positions(), at // 2, None))
    if line is None or column is None:
        return ""
    text = linecache.getline(frame.f_code.co_filename, line).encode()[column:].decode(errors="replace")
    callee = _CALLEE.match(text)
    return callee.group() if callee else ""


def locate(message: str, line: str = "") -> str:
    """Insert the user's line: `rule; remedy` becomes `rule (model.py:12); remedy`."""
    line = line or user_line()
    rule, semicolon, remedy = message.partition(";")
    return f"{rule.removesuffix(_end(line))}{_end(line)}{semicolon}{remedy}"


def _end(line: str) -> str:
    return f" ({line})" if line else ""


def add_context(error: GraphError, op: str, operands: str, line: str = "") -> GraphError:
    """Add op, operands and line to an error: `matmul: inner dimensions differ, f32[4,3] @ f32[5,2] (model.py:12)`."""
    if error.placed:
        return error
    line = line or user_line()
    rule, semicolon, remedy = str(error).partition(";")
    rule = rule.removesuffix(_end(line)).removeprefix(f"{op}: ")
    operands = f", {operands}" if operands else ""
    result = type(error)(locate(f"{op}: {rule}{operands}{semicolon}{remedy}", line))
    result.placed = True
    return result


# Plain text: names of users and files are escaped before they reach a terminal or a page ------------------------------

# Control characters but tab and newline, characters that reverse the direction of text, surrogates, and characters
# that XML forbids.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def plain(text: str) -> str:
    """Escape each character that a terminal would obey or a page cannot hold: ESC is written as its code."""
    return text if text.isprintable() else _UNSAFE.sub(_escape_match, text)


def one_line(text: str) -> str:
    """Escape like `plain`, and line breaks and tabs too: so no name begins a line of its own."""
    return text if text.isprintable() else plain(text).replace("\n", "\\n").replace("\t", "\\t")


def escape_html(text: str) -> str:
    """Escape a text for HTML and SVG, also inside attributes."""
    return html.escape(plain(text))


def _escape_match(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
