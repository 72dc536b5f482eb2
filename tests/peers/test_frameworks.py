"""Adapters: each function of a framework means what ours of that name means, and each workload gives our results."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
from compare import frameworks
from graphs import op as registry
from graphs.testing import samples

pytestmark = pytest.mark.peers
CONTROL = {"cond", "switch", "while_loop", "scan"}  # which have no samples: workloads try them
each_framework = pytest.mark.parametrize("name", frameworks.names())


def started(name):
    framework = frameworks.named(name)
    if framework.missing:
        pytest.skip(framework.missing)
    framework.start(0, doubles=True)
    return framework


def outcomes(framework, functions, name):
    """Of each sample call of an op: "right", "wrong" with what is wrong, or "refused"."""
    for sample in samples(name):
        try:
            found = framework.numpy(functions[name](*framework.arrays(list(sample.args)), **sample.attrs))
        except Exception:  # noqa: BLE001  (an adapter may refuse what no workload asks for)
            yield "refused", sample
            continue
        leaves = g.tree.leaves(sample(*sample.arrays)), g.tree.leaves(found)
        same = all(np.shape(a) == np.shape(b) and np.allclose(a, b, 1e-6, 1e-6) for a, b in zip(*leaves, strict=True))
        yield "right" if same else "wrong", sample


@each_framework
def test_functions_mean_what_ours_of_that_name_mean(name):
    framework = started(name)
    functions = framework.functions()
    for op in sorted(set(functions) & set(registry.registered()) - CONTROL):
        found = list(outcomes(framework, functions, op))
        assert not [str(sample) for outcome, sample in found if outcome == "wrong"], op
        assert "right" in {outcome for outcome, _ in found}, op
