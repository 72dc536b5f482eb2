"""The gate by its table in PyTorch, JAX and TensorFlow: nothing wrong passes in silence, and what is right passes."""

from __future__ import annotations

import pytest

from tests.helpers import gates
from tests.helpers.together import check_each

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(params=gates.PEERS)
def framework(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.mark.parametrize("kind", gates.KINDS)
def test_what_a_mode_has_wrong_is_found_or_the_answer_says_that_it_is_not_seen(framework, kind):
    world = gates.PEERS[framework]
    rows = [row for row in gates.rows({framework: world}) if row.kind == kind]
    if not rows:
        pytest.skip("a function of this framework has no state")

    def check(case):
        status, said = gates.gated(world, *case)
        assert status == "disagree" or any(words in said for words in gates.SAYS), said

    check_each([(row, wrong) for row in rows for wrong in gates.mutants(world, row)], check)


@pytest.mark.parametrize("kind", gates.KINDS)
def test_a_mode_that_is_right_is_admitted(framework, kind):
    world = gates.PEERS[framework]
    rows = [row for row in gates.rows({framework: world}) if row.kind == kind]
    if not rows:
        pytest.skip("a function of this framework has no state")

    def check(row):
        status, said = gates.gated(world, row)
        assert status == "ok", said

    check_each(rows, check)
