"""Every workload: a valid case at each size, repeatable, finite, and right gradients in both engines."""

import sys
from collections.abc import Callable
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dynamic
import graphs
import static
from compare import workloads
from compare.cli.command import graphduel
from compare.engines import cases
from compare.instruments import parity
from compare.plans import jobs
from compare.plans import settings as presets
from compare.plans.settings import Settings
from compare.workloads import Case, Workload
from compare.workloads.base import Example
from tests.helpers.slow import mostly_slow

NAMES = workloads.names()
SIZES = ("small", "medium", "large")
FEW = 3
# Branches and loops inside the graph.
CONTROLLED = {
    "early_exit",
    "fixed_point",
    "decode_text",
    "beam_text",
    "branch_on_sum",
}


def dynamic_step(case: Case) -> Callable[..., Any]:
    return dynamic.value_and_grad(case.loss)


def static_step(case: Case) -> Callable[..., Any]:
    return static.jit(static.value_and_grad(cases.traceable_loss(case)))


ENGINES = {"dynamic": dynamic_step, "static": static_step}


@pytest.fixture(params=NAMES)
def workload(request: pytest.FixtureRequest) -> Workload:
    return workloads.get(request.param)


some = pytest.mark.parametrize("workload", mostly_slow(NAMES, 4), indirect=True)


@cache
def small(name: str) -> Case:
    """The smallest case of a workload, which no test changes."""
    return workloads.get(name).case("small")


def in_float64(tree: Any) -> Any:
    def convert(leaf: Any) -> Any:
        is_float = isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"
        return leaf.astype(np.float64) if is_float else leaf

    return graphs.tree_map(convert, tree)


def assert_close(result: Any, expected: Any, rtol: float = 1e-4, atol: float = 1e-6) -> None:
    for one, other in zip(graphs.tree.leaves(result), graphs.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol, atol)


# Cases ------------------------------------------------------------------------------------------------------


def test_a_workload_is_registered_under_its_name(workload: Workload) -> None:
    assert workload is workloads.get(workload.name)
    assert tuple(workload.sizes) == SIZES
    assert workload.title
    assert workload.shows.endswith(".")


MINE = """
import numpy as np

import graphs
from compare.workloads.base import Case, Workload


def loss(params, x):
    return graphs.mean((x @ params["w"]) ** 2)


def make(width):
    return Case(loss, {"w": np.ones((width, width), np.float32)}, ((np.ones((2, width), np.float32),),), (2,))


WORKLOAD = Workload("mine", "Mine", "What I want to know.", "open", "own", {"small": {"width": 3}}, make)
"""


def test_a_file_and_its_name_in_the_list_are_a_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE, "utf-8")
    monkeypatch.setattr(workloads, "__path__", [*workloads.__path__, str(tmp_path)])
    text = Path(workloads.__file__).read_text("utf-8").replace('    "beam_text",\n', '    "beam_text",\n    "mine",\n')
    listed: dict[str, Any] = {"__name__": "compare.workloads"}
    exec(text, listed)  # the file with one more line
    monkeypatch.setattr(workloads, "_sources", listed["_sources"])
    assert "What I want to know." in CliRunner().invoke(graphduel, ["list"]).stdout
    (cell,) = jobs.cells(Settings(only="mine"))
    modes = parity.measure(Settings().job("parity", cell)).modes
    assert {mode: row.status for mode, row in modes.items()} == {"dynamic": "ok", "static-exact": "ok"}
    del sys.modules["compare.workloads.mine"]


def test_parameters_are_float32_and_lengths_are_positive(workload: Workload) -> None:
    case = small(workload.name)
    assert all(leaf.dtype == np.float32 for leaf in graphs.tree.leaves(case.params))
    assert min(case.lengths) > 0
    assert len({len(example) for example in case.examples}) == 1


def test_a_policy_that_pads_has_a_masked_loss_and_dims(workload: Workload) -> None:
    case = small(workload.name)
    pads = not {"bucket", "pad"}.isdisjoint(workload.policies)
    assert pads == (case.masked is not None)
    assert case.dims is None or len(case.dims) == 1 + len(case.examples[0])


def test_named_axes_have_the_length_of_the_example(workload: Workload) -> None:
    case = small(workload.name)
    for example, length in zip(case.examples, case.lengths, strict=True):
        for array, axes in zip(example, (case.dims or (None,) * (1 + len(example)))[1:], strict=True):
            sizes = [size for size, axis in zip(array.shape, axes, strict=True) if axis] if axes else []
            assert set(sizes) <= {length}


@some
def test_sizes_grow(workload: Workload) -> None:
    def elements(size: str) -> int:
        case = workload.case(size)
        return sum(case.lengths) + sum(int(leaf.size) for leaf in graphs.tree.leaves(case.params))

    small, medium, large = map(elements, SIZES)
    assert small < medium < large


def test_an_equal_seed_gives_an_equal_case(workload: Workload) -> None:
    first, second = small(workload.name), workload.case("small")
    assert first.lengths == second.lengths
    for one, two in ((first.params, second.params), (first.examples, second.examples)):
        leaves = zip(graphs.tree.leaves(one), graphs.tree.leaves(two), strict=True)
        assert all(np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype for a, b in leaves)


@some
def test_another_seed_gives_another_case(workload: Workload) -> None:
    if "seed" not in signature(workload.make).parameters:
        assert workload.name == "branch_on_sum"  # the textbook's numbers
        return
    first, other = (workload.make(**workload.sizes["small"], seed=seed) for seed in (0, 1))
    pairs = zip(graphs.tree.leaves(first.params), graphs.tree.leaves(other.params), strict=True)
    assert any(not np.array_equal(one, two) for one, two in pairs)


# Values and gradients ---------------------------------------------------------------------------------------


def test_the_loss_of_every_example_is_a_finite_float32(workload: Workload) -> None:
    case = small(workload.name)
    for example in case.examples:
        value = case.loss(case.params, *example)
        assert np.shape(value) == ()
        assert value.dtype == np.float32
        assert np.isfinite(value)


@some
def test_engines_agree(workload: Workload) -> None:
    case = small(workload.name)
    steps = [make(case) for make in ENGINES.values()]
    for example in case.examples[:FEW]:
        first, second = (step(case.params, *example) for step in steps)
        assert_close(first, second)


@some
def test_the_tape_and_the_traced_graph_are_one_graph(workload: Workload) -> None:
    case = small(workload.name)
    tape = dynamic.record(dynamic.value_and_grad(case.static_loss or case.loss), case.params, *case.examples[0])
    graph = static.trace(static.value_and_grad(cases.traceable_loss(case)), case.params, *case.examples[0])
    if len(list(graph.nested())) > 1:
        assert workload.name in CONTROLLED
        return
    assert tape.op_counts() == graph.op_counts()
    assert graphs.isomorphic(tape, graph)


@some
@pytest.mark.parametrize("engine", mostly_slow(ENGINES, 1))
def test_gradients_equal_finite_differences(workload: Workload, engine: str) -> None:
    case = small(workload.name)
    step = ENGINES[engine](case)
    params = in_float64(case.params)
    for example in map(in_float64, case.examples[:2]):
        _, gradients = step(params, *example)
        direction = random_direction(params)
        slope = sum(graphs.tree.leaves(graphs.tree_map(np.vdot, gradients, direction)))
        np.testing.assert_allclose(slope, difference(case, params, example, direction), rtol=1e-5, atol=1e-8)


def random_direction(params: Any) -> Any:
    rng = np.random.default_rng(7)
    return graphs.tree_map(lambda leaf: rng.standard_normal(leaf.shape), params)


def difference(case: Case, params: Any, example: Example, direction: Any, step: float = 1e-6) -> float:
    """The central difference of the loss along a direction, on plain arrays."""

    def at(offset: float) -> float:
        moved = graphs.tree_map(lambda leaf, towards: leaf + offset * towards, params, direction)
        return float(case.loss(moved, *example))

    return (at(step) - at(-step)) / (2 * step)


def test_a_rewritten_loss_equals_the_loss(workload: Workload) -> None:
    case = small(workload.name)
    for example in case.examples if case.static_loss else ():
        assert case.static_loss is not None
        assert_close(case.static_loss(case.params, *example), case.loss(case.params, *example))


# Which are measured -----------------------------------------------------------------------------------------


def test_a_quick_run_leaves_workloads_out_unless_asked_for_and_a_full_one_has_all() -> None:
    quick = {cell.workload for cell in jobs.cells(Settings())}
    assert "encoder_text" not in quick
    assert {cell.workload for cell in jobs.cells(Settings(only="encoder*"))} == {"encoder_text"}
    assert {cell.workload for cell in jobs.cells(Settings("full"))} == set(workloads.names())
    for preset in presets.PRESETS.values():
        assert set(preset.leaves_out) <= set(workloads.names())
