"""Statements with an effect in a branch that a value decides on: right or refused, whatever the effect."""

import contextlib
import io

import numpy as np

from tests.helpers.programs import function
from tests.helpers.together import check_each
from tests.static.convert.outcome import outcome
from tests.static.convert.statements import HEAD, effects
from tests.static.convert.table import IMPORTS

ROW = np.array([1.4, 0.3, -0.2, 2.1])


def test_an_effect_in_a_branch_is_right_or_refused():
    ends = set()

    def check(effect):
        with contextlib.redirect_stdout(io.StringIO()):
            found = outcome(
                function(IMPORTS + HEAD + effect.program(), {"__name__": "effect"}), [(ROW,), (-ROW,), (-2 * ROW,)]
            )
        assert found.status in ("right", "refused"), found
        ends.add(found.status)

    check_each(effects(), check, lambda effect: effect.statement)
    assert ends == {"right", "refused"}
