"""The checks of `graphduel doctor`: whether each part imports, and the environment of a worker."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from compare.errors import WorkerError
from compare.records.job import Job
from compare.records.record import error_of
from compare.run import product
from compare.run.processes import ask
from compare.run.start import PACKAGES
from compare.words import text

PARTS = ("graphs", "static", "dynamic", "compare.claims", "compare.page", "compare.suite.stages")
LIBRARIES = ("numpy", "optree", "networkx", "matplotlib", "msgspec", "rich", "jinja2", "psutil", "threadpoolctl")
FINE = "fine"
START_SECONDS = 60.0

Rows = list[tuple[str, str]]


def examine() -> tuple[Rows, Rows]:
    """Return rows for each part, with "fine" or its error, and rows for a worker's environment and native code."""
    parts = [(name, _imports(name)) for name in (*PARTS, *LIBRARIES)]
    state, environment = _worker()
    if "tape" in environment:
        environment["tape"] = _tape(environment["tape"] == "compiled")
    if environment.get("memory"):
        environment["memory"] = text.size(environment["memory"])
    rows = [(name, _text(v)) for name, v in environment.items()]
    return [*parts, ("worker process", state)], [*rows, ("native code", _native())]


def places() -> Rows:
    """Return the folder of each package and the file of the compiled tape; workers import the same ones."""
    return [(name, str(Path(file).parent) if name in PACKAGES else file) for name, file in product.files().items()]


def _imports(name: str) -> str:
    try:
        import_module(name)
    except Exception as error:  # noqa: BLE001  (finding broken parts is the purpose)
        return f"{type(error).__name__}: {error}"
    return FINE


def _worker() -> tuple[str, dict[str, Any]]:
    try:
        answer = ask(Job("environment"), START_SECONDS)
    except WorkerError as error:
        return str(error), {}
    return error_of(answer) or FINE, to_builtins(answer.environment) if answer.environment else {}


def _tape(compiled: bool) -> str:
    """Return which tape runs; for the tape in Python, which is slower but not broken, how to get the compiled one."""
    if compiled:
        return "its loops are compiled"
    from dynamic import tapes

    why = tapes.remedy() or "GRAPHDUEL_TAPE says so; unset it for the compiled ones"
    return f"its loops run in Python: {why}"


def _native() -> str:
    """Return for which processor graphs can be compiled to machine code, or why they cannot.

    If they cannot, nothing is broken: the native backend is optional.
    """
    from graphs.errors import GraphError
    from static.call import backend

    try:
        backend.choose_backend("native")
    except GraphError as error:
        return f"none here: {error}"
    from static.native.target import host

    return f"for {host().cpu}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return "unknown" if value is None else str(value)
