"""Statements with an effect in a branch that a value decides on: right or refused, whatever the effect."""

import contextlib
import io
import linecache
from types import ModuleType

import numpy as np

from tests.helpers.together import check_each
from tests.static.convert.outcome import outcome
from tests.static.convert.statements import HEAD, effects

ROW = np.array([1.4, 0.3, -0.2, 2.1])


def function(effect):
    """The function of a program, which has a file and lines as a user's has."""
    text = HEAD + effect.program()
    name = f"effect_{abs(hash(text))}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = ModuleType("effect")
    exec(compile(text, name, "exec"), module.__dict__)
    return module.f


def test_an_effect_in_a_branch_is_right_or_refused():
    ends = set()

    def check(effect):
        with contextlib.redirect_stdout(io.StringIO()):
            found = outcome(function(effect), [(ROW,), (-ROW,), (-2 * ROW,)])
        assert found.status in ("right", "refused"), found
        ends.add(found.status)

    check_each(effects(), check, lambda effect: effect.statement)
    assert ends == {"right", "refused"}
