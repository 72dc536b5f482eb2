"""Many cases in one test: what a test costs beside its work is paid once, and every case that fails is named."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from tests.helpers.slow import spread


def check_each(cases: Iterable[Any], check: Callable[[Any], Any], name: Callable[[Any], Any] = str) -> None:
    """Run a check on every case, and raise what failed together, each error with a note that names its case.

    That there is no case is a failure too, and so is a case that skips the test for all of them.
    """
    count, failures = 0, []
    for case in cases:
        count += 1
        try:
            check(case)
        except pytest.skip.Exception as error:
            failures.append(AssertionError(f"{name(case)} would skip every case: {error}"))
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  (raised below, with those of other cases)
            error.add_note(f"case: {name(case)}")
            failures.append(error)
    assert count, "there is no case to check"
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} cases fail", failures)


def together(
    names: str | Sequence[str], cases: Iterable[Any], ids: Any = None, quick: int | set[int] | None = None
) -> Callable[..., Any]:
    """As `pytest.mark.parametrize`, in one test; for checks that are quick, and change nothing that the next one sees.

    `ids` are names in the order of the cases, or what makes a name of a case. Where `quick` is given, so many
    cases, spread evenly, or those at its places, are one test, and the others are another with the mark `slow`.
    """
    names = names.split(",") if isinstance(names, str) else list(names)
    rows = [(case,) if len(names) == 1 else tuple(case) for case in cases]
    titles = _titles(rows, ids)

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(places: Iterable[int] = range(len(rows)), **fixtures: Any) -> None:
            def check(at: int) -> None:
                test(**fixtures, **dict(zip(names, rows[at], strict=True)))

            check_each(places, check, lambda at: titles[at])

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        if quick is not None:
            kept.append(inspect.Parameter("places", inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        if quick is None:
            return run
        return _in_two(run, spread(len(rows), quick) if isinstance(quick, int) else quick, len(rows))

    return decorate


def _in_two(test: Callable[..., Any], quick: set[int], count: int) -> Callable[..., Any]:
    rest = [at for at in range(count) if at not in quick]
    assert rest, f"all of the {count} cases are quick: leave out `quick`"
    parts = [pytest.param(sorted(quick), id="some"), pytest.param(rest, id="rest", marks=pytest.mark.slow)]
    return pytest.mark.parametrize("places", parts)(test)


def _titles(rows: Sequence[tuple[Any, ...]], ids: Any) -> list[str]:
    if ids is None or callable(ids):
        return ["-".join(str((ids or str)(value)) for value in row) for row in rows]
    titles = [str(title) for title in ids]
    assert len(titles) == len(rows)
    return titles
