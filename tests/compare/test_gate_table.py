"""The gate by its table: what a mode has wrong is found, or the answer says that it is not seen; right modes pass."""

from __future__ import annotations

import pytest

from tests.helpers import gates, kinks
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


@pytest.mark.parametrize("gate", [kinks.by_framework, kinks.by_ours])
@together(("kink", "seed"), [(kink, seed) for seed in range(6) for kink in kinks.KINKS], quick=2)
def test_a_mode_on_the_other_side_of_a_jump_is_right_and_one_that_is_off_beside_it_is_not(gate, kink, seed):
    depth = 1 + seed % 3
    network = kinks.network(kink, seed, depth, width=(4, 16, 48)[(seed + depth) % 3])
    status, said = gate(network)
    assert status == "ok", said
    status, said = gate(network, kinks.scaled(seed))
    assert status == "disagree", said
