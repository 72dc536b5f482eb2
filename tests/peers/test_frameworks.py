"""Adapters: each function of a framework means what ours of that name means, and each workload gives our results."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
from compare import engines as frameworks
from compare import workloads
from compare.instruments import parity, rounding
from compare.own import run
from compare.records.cells import Compilations, Parity
from compare.records.record import records_of
from compare.subjects import effects
from graphs import op as registry
from graphs.testing import samples
from tests.helpers.plans import plan_of

pytestmark = pytest.mark.peers


def told(asked, function, calls):
    records = run.here(asked, function, calls).records
    return records_of(records, Compilations), records_of(records, Parity)


CONTROL = {"cond", "switch", "while_loop", "scan"}  # which have no samples: workloads try them
each_framework = pytest.mark.parametrize("name", frameworks.frameworks())


def started(name):
    framework = frameworks.find_engine(name)
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
    for op in sorted(set(functions) & set(registry.registered_ops()) - CONTROL):
        found = list(outcomes(framework, functions, op))
        assert not [str(sample) for outcome, sample in found if outcome == "wrong"], op
        assert "right" in {outcome for outcome, _ in found}, op


@each_framework
@pytest.mark.parametrize(
    "workload", ["tiny_mlp", "mlp_digits", "rnn_text", "branch_on_sum", "early_exit", "moe_digits"]
)
def test_workloads_give_our_results(name, workload):
    framework = started(name)
    ours = workloads.get(workload).case("small")
    theirs = framework.library.load(f"compare.workloads.{workload}").WORKLOAD.case("small")
    (expected, *_) = parity.expectations(ours)
    step = framework.build(framework.mode_names[0], theirs.loss, theirs.argnum)
    example = framework.arrays(theirs.examples[expected.example])
    loss, gradients = framework.numpy(step(framework.arrays(theirs.params), *example))
    assert rounding.tree_error(loss, expected.reference.exact[0]) < 1e-5
    assert rounding.tree_error(gradients, expected.reference.exact[1]) < 1e-5


def test_a_module_of_pytorch_is_differentiated_in_its_parameters_and_keeps_its_state():
    framework = started("torch")
    import torch

    framework.start(0)  # in float32, as users have it
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    calls = [(model, torch.randn(8, 3)), (model, torch.randn(5, 3))]
    asked = plan_of("torch", "", "", ("eager",), seconds=0.01)
    (found,), (parity,) = told(asked, lambda model, x: (model(x) ** 2).sum(), calls)
    assert found.random
    assert 0 < parity.modes["eager"].gradient_error < 1e-4  # from float64, with the same random numbers
    assert all(torch.equal(before[name], buffer) for name, buffer in model.named_buffers())
    value, gradients = framework.build("torch-eager", lambda model, x: model(x).sum(), 0)(*calls[0])
    assert not value.requires_grad
    assert gradients.keys() == dict(model.named_parameters()).keys()
    (exact,), (parity,) = told(asked, lambda model, x: (model[0](x) ** 2).sum(), calls)
    assert not exact.random
    assert 0 < parity.modes["eager"].gradient_error < 1e-5


@pytest.fixture
def disk(tmp_path):
    """A folder in which JAX keeps all that it compiles."""
    jax = pytest.importorskip("jax")
    from jax.experimental.compilation_cache import compilation_cache

    kept = {"jax_compilation_cache_dir": str(tmp_path), "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": -1}  # fmt: skip
    before = {name: getattr(jax.config, name) for name in kept}
    for name, value in kept.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def looped(x):
    import jax

    return jax.lax.scan(lambda carry, part: (carry + part, carry), x[0], x)[0].sum()


def test_a_loop_that_jax_compiles_in_each_call_reads_no_file_of_the_users(disk):
    framework = started("jax")
    example = (framework.arrays(np.ones((3, 2), np.float32)),)
    framework.ops.called(looped, example)
    assert list(disk.iterdir())
    assert effects.effects_of(looped, example, framework) == []


def test_a_loop_that_eager_compiles_in_each_call_is_not_found_on_the_disk(disk):
    """Its user's process has no such disk: there each call takes what the compiler takes."""
    framework = started("jax")
    example = (framework.arrays(np.ones((5, 2), np.float32)),)
    before = set(disk.iterdir())
    framework.build("jax-eager", looped, None)(*example)
    assert set(disk.iterdir()) == before
    framework.build("jax-jit", looped, None)(*example)
    assert set(disk.iterdir()) > before
