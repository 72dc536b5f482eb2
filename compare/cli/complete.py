"""Shell completion: the names that can follow on the command line. Nothing is run or measured for it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from compare.errors import CompareError


def names(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete workloads and claims, for `show`."""
    from compare import claims, workloads
    from compare.claims import verdict as own

    every = (*workloads.names(), *claims.CLAIMS, *own.OWN)
    return [name for name in every if name.lower().startswith(typed.lower())]


def functions(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[Any]:
    """Complete Python files, and after a colon the functions in the file, which is read and not run."""
    from click.shell_completion import CompletionItem

    file, colon, _ = typed.rpartition(":")
    if not colon:
        return [CompletionItem(typed, type="file")]
    try:
        body = ast.parse(Path(file).read_text("utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return []
    defined = (node.name for node in body if isinstance(node, ast.FunctionDef))
    return _starting(typed, (f"{file}:{function}" for function in defined if not function.startswith("_")))


def claims(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete claims, for `run --claim`."""
    from compare.claims import CLAIMS

    return [id for id in CLAIMS if id.startswith(typed.upper())]


def cells(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete workloads, and after a slash their sizes, for `--only`."""
    from compare import workloads

    workload, slash, _ = typed.partition("/")
    if slash and workload in workloads.names():
        return _starting(typed, (f"{workload}/{size}" for size in workloads.get(workload).sizes))
    return _starting(typed, workloads.names())


def run_modes(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete the modes of the run in DIRECTORY, for `export --mode`; without a run, those of all workloads."""
    from compare import workloads
    from compare.records import results
    from compare.records.cells import Time
    from compare.records.record import records_of

    path = results.find_results(Path(ctx.params.get("directory") or ""))
    if path:
        with suppress(CompareError):
            return _starting(typed, {mode for record in records_of(results.read(path), Time) for mode in record.modes})
    return _starting(typed, {mode for name in workloads.names() for mode in workloads.get(name).modes})


def modes(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete modes of our engines, or of the framework in `--framework`, after the last comma."""
    from compare import engines

    with suppress(CompareError):
        engine = engines.find_engine(ctx.params.get("framework") or engines.OWN)
        return _complete_list(typed, (*(mode.name for mode in engine.modes if mode.name), *engine.aliases))
    return []


def frameworks(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Complete frameworks that have an adapter, after the last comma."""
    from compare import engines

    return _complete_list(typed, engines.frameworks())


def _complete_list(typed: str, names: Iterable[str]) -> list[str]:
    """Complete the last of several names with commas between them; names before it are not offered again."""
    before, comma, last = typed.rpartition(",")
    return [f"{before}{comma}{name}" for name in _starting(last, set(names) - set(before.split(",")))]


def _starting(typed: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(typed))
