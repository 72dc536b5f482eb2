"""The gate by its table: what a mode has wrong is found, or the answer says that it is not seen; right modes pass."""

from __future__ import annotations

from tests.helpers import gates
from tests.helpers.together import together

ROWS = gates.rows(gates.HERE)
CASES = [(row, wrong) for row in ROWS for wrong in gates.mutants(gates.HERE[row.framework], row)]


@together(("row", "wrong"), CASES, quick=20)
def test_what_a_mode_has_wrong_is_found_or_the_answer_says_that_it_is_not_seen(row, wrong):
    status, said = gates.gated(gates.HERE[row.framework], row, wrong)
    assert status == "disagree" or any(words in said for words in gates.SAYS), said


@together("row", [row for row in ROWS if row.framework == "graphduel"], quick=4)
def test_a_mode_that_is_right_is_admitted(row):
    status, said = gates.gated(gates.HERE[row.framework], row)
    assert status == "ok", said
