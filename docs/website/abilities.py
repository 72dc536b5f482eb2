"""What `graphduel compare` takes and answers for each engine, as a table: `python -m docs.website.abilities` prints it.

It is made of what the adapters say: an ability is a flag of an adapter, or a method of a role that it has its own of.
docs/commands.md holds it, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from compare import engines
from compare.cli.functions import compare
from compare.engines import Engine
from compare.text import echo

Able = Callable[[Engine], bool]


def _has_its_own(place: str) -> Able:
    """Whether an adapter has its own method of a role, `role.method`."""
    role, _, method = place.partition(".")

    def able(engine: Engine) -> bool:
        kind = type(getattr(engine, role))
        first = next(each for each in reversed(kind.__mro__) if method in vars(each))
        return getattr(kind, method) is not getattr(first, method)

    return able


def _tells_compilations(engine: Engine) -> bool:
    return type(engine).observed is not Engine.observed


def _compiles(engine: Engine) -> bool:
    return len(engine.modes) > 1


def _keeps_code(engine: Engine) -> bool:
    """Whether the environment of a process names a folder for compiled code."""
    cache = Path("cache")
    return any(str(cache) in value for value in engine.environment(cache).values())


def _always(_engine: Engine) -> bool:
    return True


OPTIONS: dict[str, Able] = {
    "--device": _has_its_own("devices.gpu"),
    "--modes": _compiles,
    "--where": lambda engine: engine.trials.places,
    "--remedies": lambda engine: engine.trials.tries,
    "--bisect": lambda engine: engine.ops.shows_graphs,
    "--mode": _compiles,
}
"""The options that not every engine takes; all others are for every engine."""
ANSWER: dict[str, Able] = {
    "outputs and gradients against float64": _always,
    "a call, ratio to the first mode, first run, memory": _always,
    "break-even": _compiles,
    "first run from compiled code that is kept on the disk": _keeps_code,
    "effects of a function, told": _always,
    "effects of a function, refused without `--allow-effects`": lambda engine: not engine.keeps_effects,
    "a whole training step, with its optimizer": _has_its_own("state.training"),
    "compiles, each with its reason": _tells_compilations,
    "graph breaks by reason": _has_its_own("compiler.captured"),
    "seconds and bytes by line of source": lambda engine: engine.tells_lines,
    "drawn graphs, shape policies, rewrites": lambda engine: engine.takes_apart,
    "page, `--fail-if`, `--junit`, `--summary`, exit codes": _always,
}
"""What the answer and the page hold, in the order of reading."""


def table() -> str:
    """The table in Markdown: a row for the modes, each option and each part of the answer, a column for each engine."""
    adapters = [engines.find_engine(name) for name in engines.names()]
    return "\n".join(_row(cells) for cells in _rows(adapters))


def _rows(adapters: list[Engine]) -> Iterator[list[str]]:
    yield ["what", *(engine.name for engine in adapters)]
    yield [":--", *(":--" for _ in adapters)]
    yield ["modes, the base first", *(", ".join(mode.name or "eager" for mode in engine.modes) for engine in adapters)]
    flags = [max(option.opts, key=len) for option in compare.params if option.param_type_name == "option"]
    shared = [flag for flag in flags if flag not in (*OPTIONS, "--framework", "--engines")]
    yield [", ".join(f"`{flag}`" for flag in shared), *("yes" for _ in adapters)]
    for what, able in [*((f"`{flag}`", OPTIONS[flag]) for flag in flags if flag in OPTIONS), *ANSWER.items()]:
        yield [what, *("yes" if able(engine) else "no" for engine in adapters)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    echo(table())
