"""The cell magic `%%graphduel`: compare the function that a cell of a notebook defines.

    %load_ext compare

    %%graphduel [(w, x)] --modes dynamic,static,static-symbolic
    def loss(w, x):
        return g.mean(g.tanh(x @ w) ** 2)

This module does not import IPython: it gets the shell that loads the extension.
"""

from __future__ import annotations

import argparse
import ast
import shlex
from typing import Any, NoReturn

from compare.engines.words import split
from compare.errors import CompareError
from compare.own import compare
from compare.text import echo
from graphs.errors import GraphError


class MagicError(CompareError):
    """The line of the magic cannot be read, or the cell defines no function."""

    exit_code = 2


class _Words(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise MagicError(f"%%graphduel: {message}; {self.format_usage().strip()}")


def _words() -> _Words:
    words = _Words(prog="%%graphduel", add_help=False)
    words.add_argument("inputs", nargs="?", default="inputs", metavar="INPUTS")
    words.add_argument("--framework", metavar="NAME")
    words.add_argument("--modes", metavar="LIST")
    words.add_argument("--mode", metavar="NAME=WORD", action="append", default=[])
    words.add_argument("--gradient", action=argparse.BooleanOptionalAction, default=None)
    words.add_argument("--seconds", type=float, default=1.0)
    words.add_argument("--threads", metavar="N|auto")
    words.add_argument("--allow-effects", action="store_true")
    return words


def magic(shell: Any) -> Any:
    """Return the function of the cell magic `%%graphduel` for an IPython shell."""

    def graphduel(line: str, cell: str) -> Any:
        """Run the cell and compare the last function that it defines, in this process.

        `%%graphduel [INPUTS] [--framework NAME] [--modes LIST] [--mode NAME=WORD]... [--gradient | --no-gradient]
        [--seconds S] [--threads N] [--allow-effects]`: INPUTS is an expression without spaces or in quotes, a list of
        calls, each a tuple of arguments; `inputs` if not given.
        """
        try:
            return _compare_cell(shell, line, cell)
        except (CompareError, GraphError) as error:  # a refusal is an answer, and a traceback would not help
            echo(f"{type(error).__name__}: {error}", err=True)
            return None

    return graphduel


def _compare_cell(shell: Any, line: str, cell: str) -> Any:
    asked = _words().parse_args(shlex.split(line))
    name = _last_function(cell)
    if not shell.run_cell(cell).success:
        return None  # the shell has printed the error
    try:
        inputs = eval(asked.inputs, shell.user_ns)  # noqa: S307  (the user's own expression, in the user's own notebook)
    except NameError as error:
        raise MagicError(f"%%graphduel: {error}; give a list of calls, each a tuple of arguments") from None
    modes = [*(split(asked.modes) if asked.modes else ()), *asked.mode] or None
    chosen = {"gradient": asked.gradient, "seconds": asked.seconds, "allow_effects": asked.allow_effects}
    chosen |= {"framework": asked.framework, "threads": asked.threads}
    return compare(shell.user_ns[name], inputs, modes, processes=0, **chosen)


def _last_function(cell: str) -> str:
    """Return the name of the last function that a cell defines. Raises MagicError if there is none."""
    try:
        names = [node.name for node in ast.parse(cell).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError as error:
        raise MagicError(f"%%graphduel: line {error.lineno} of the cell is no Python: {error.msg}") from None
    if not names:
        raise MagicError("%%graphduel: the cell defines no function; write def loss(...): in it")
    return names[-1]
