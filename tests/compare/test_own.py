"""Comparing a function of one's own: inputs, gradients, axes, workers and the result."""

import gc
import json
import os
import textwrap
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compare
import dynamic
import graphs as g
from compare import engines
from compare.claims.verdict import OWN
from compare.engines.graphduel.steps import transform_step
from compare.errors import CompareError, EffectsError, InputsError
from compare.instruments import rounding
from compare.own import measure
from compare.own.result import Result
from compare.records import results
from compare.records.cells import Time
from compare.records.record import Failure
from compare.subjects import exchange, origin
from compare.subjects.case import calls_in, case_of, converting, differentiates, lengths, varying_axes
from compare.subjects.subject import REPEATS, SIZE, modes_of
from tests.helpers import own_functions as own
from tests.helpers.own_functions import MASKS, QUICK, STREAM
from tests.helpers.records import lines, typed
from tests.helpers.records import plain as json_of

OURS = engines.find_engine(engines.OWN)
MODES = OURS.mode_names[:5]


def zeros(*shape):
    return np.zeros(shape, np.float32)


# Modes and inputs


def test_static_is_static_exact_and_a_mode_counts_once():
    assert modes_of(OURS, ["dynamic", "static", "static-exact"]) == ("dynamic", "static-exact")
    assert modes_of(OURS, "static-pad") == ("dynamic", "static-pad")
    assert modes_of(OURS) == ("dynamic", "static-exact")


@pytest.mark.parametrize(("modes", "told"), [(["dinamic"], "did you mean 'dynamic'"), ([], "modes is empty")])
def test_modes_that_are_none(modes, told):
    with pytest.raises(InputsError, match=told):
        modes_of(OURS, modes)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ([], r"inputs is empty; .* write inputs = \[\(x,\)\]"),
        (own.X, r"inputs is of type ndarray; .* write inputs = \[\(x,\)\]"),
        ([3], r"inputs\[0\] is of type int; .* write inputs = \[\(x,\)\]"),
        ([(own.X,), (own.X, own.X)], r"inputs\[1\] has 2 arguments and inputs\[0\] has 1"),
        ([([1.0, 2.0],)], "holds no NumPy array"),
        ([()], r"inputs\[0\] is empty; .* write inputs = \[\(x,\)\]"),
    ],
)
def test_inputs_that_cannot_be_used(inputs, told):
    with pytest.raises(InputsError, match=told):
        case_of(own.square, inputs, None, None)


def test_a_function_without_arguments_has_nothing_that_our_engines_trace():
    with pytest.raises(InputsError, match="constant takes no argument, so there is nothing to trace: give it its"):
        case_of(constant, [(), ()], None, None)


def test_a_call_without_arguments_is_one_where_all_parameters_have_defaults():
    assert calls_in([(), (3,)], scaled) == [(), (3,)]


def constant():
    return g.sum(own.X)


def scaled(times=2.0):
    return times


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pinn", "mlp_digits"])
def test_a_function_that_is_called_as_a_model_or_a_workload_of_ours_is_the_users(name):
    def loss(x):
        return g.sum(x * x)

    loss.__name__ = loss.__qualname__ = name
    result = compare.compare(loss, inputs=[(zeros(3),)], modes=["dynamic", "static"], processes=0, seconds=0.01)
    times = [record for record in result.records if isinstance(record, Time)]
    assert {row.status for record in times for row in record.modes.values()} == {"ok"}
    assert {record.job.workload for record in times} == {f"your {name}"}
    assert not [record for record in result.records if isinstance(record, Failure)]


def test_a_number_of_workers_is_not_negative():
    with pytest.raises(InputsError, match="processes"):
        compare.compare(own.square, STREAM, processes=-1)


# What is differentiated


@pytest.mark.parametrize(
    ("f", "example", "expected"),
    [
        (own.loss, (own.PARAMS, own.X), True),
        (own.square, (zeros(3),), True),
        (own.square, (np.arange(3),), False),
        (own.outputs, (zeros(2, 3),), False),
        (lambda x: x * 2, (zeros(1),), False),
        (lambda p, x: own.square(x), ({"w": zeros(2), "n": 3}, zeros(2)), False),
        (lambda p, x: own.square(x), ({}, zeros(2)), False),
        (lambda x: 3.0, (zeros(2),), False),
    ],
)
def test_gradients_are_those_of_floats_in_argument_0_of_one_float(f, example, expected):
    assert differentiates(f, example, None) is expected
    assert differentiates(f, example, gradient=False) is False


@pytest.mark.parametrize(("f", "x", "told"), [(own.outputs, zeros(2, 3), "one float"), (own.square, np.arange(3), "0")])
def test_gradients_that_cannot_be_had(f, x, told):
    with pytest.raises(InputsError, match=told):
        differentiates(f, (x,), gradient=True)


@pytest.mark.parametrize(
    ("f", "inputs"), [(own.loss, own.inputs), (own.square, STREAM), (own.masked, MASKS), (own.outputs, [(own.X,)])]
)
@pytest.mark.parametrize("mode", MODES[:3])
def test_a_step_is_the_function_and_its_gradients_in_argument_0(f, inputs, mode):
    case = case_of(f, inputs, None, None)
    step = engines.step(mode, case)
    for call, example in zip(inputs, step.examples, strict=True):
        value, gradients = step(*example)
        if f is own.outputs:
            expected = transform_step(dynamic, f, None)(*call)
        else:
            expected = dynamic.value_and_grad(f)(*call)
        assert rounding.tree_error((value, gradients), tuple(expected)) < 1e-5


def test_the_same_argument_0_in_every_call_is_the_parameters():
    one = np.array(0.5, np.float32)
    shared = case_of(own.masked, [(one, *rest) for _, *rest in MASKS], None, None)
    assert shared.params is one
    assert shared.argnum == 0
    apart = case_of(own.square, STREAM, None, None)
    assert (apart.params, apart.argnum) == ((), 1)


# Which axes vary


@pytest.mark.parametrize(
    ("examples", "expected"),
    [
        ([(zeros(2, 3),), (zeros(2, 3),)], None),
        ([(zeros(2, 3),), (zeros(4, 3),)], (("d0", None),)),
        ([(zeros(2, 3), zeros(2)), (zeros(4, 3), zeros(4))], (("d0", None), ("d0",))),
        ([(zeros(2, 3), zeros(3)), (zeros(4, 5), zeros(5))], (("d0", "d1"), ("d1",))),
        ([({"w": zeros(2, 2), "b": zeros(2)}, zeros(n)) for n in (1, 3)], (None, ("d0",))),
        ([([zeros(2), zeros(3)],), ([zeros(4), zeros(3)],)], None),
        ([([zeros(2)],), ([zeros(2), zeros(2)],)], None),
        ([(zeros(2),), (zeros(2, 2),)], None),
        ([(zeros(2), 3), (zeros(4), 4)], (("d0",), None)),
    ],
)
def test_axes_that_vary_together_share_a_name(examples, expected):
    assert varying_axes(tuple(examples)) == expected


@given(st.lists(st.tuples(*[st.integers(1, 4)] * 3), min_size=1, max_size=5))
def test_two_axes_share_a_name_exactly_when_their_sizes_do(sizes):
    found = varying_axes(tuple((zeros(a, b), zeros(c)) for a, b, c in sizes))
    columns = list(zip(*sizes, strict=True))
    varies = [len(set(column)) > 1 for column in columns]
    assert (found is None) == (not any(varies))
    if found:
        names = [name for axes, n in zip(found, (2, 1), strict=True) for name in (axes or (None,) * n)]
        assert [name is not None for name in names] == varies
        for i, one in enumerate(names):
            assert all((one == other) == (columns[i] == columns[j]) for j, other in enumerate(names) if one and other)


def test_the_useful_size_is_that_of_the_one_axis_that_varies():
    examples = tuple((zeros(n, 3), zeros(n)) for n in (2, 5))
    assert lengths(examples, varying_axes(examples)) == (2, 5)
    assert lengths(examples, None) == (8, 20)


# Workers


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(plain)
def test_a_plain_container_reaches_the_worker_as_it_is(value):
    arrays = []
    told = json.loads(json.dumps(exchange._encode(value, arrays)))
    back = exchange._decode(told, arrays)
    assert back == value
    assert type(back) is type(value)


def test_a_bundle_gives_the_same_case(tmp_path):
    found = origin.origin_of(own.masked)
    here = case_of(own.masked, MASKS, True, (None, ("T",), ("T",)))
    source = exchange.write_bundle(tmp_path, found, here, (None, ("T",), ("T",)))
    there = getattr(exchange, source.partition(":")[2]).case(SIZE)
    assert there.dims == here.dims
    assert (there.argnum, there.branches) == (here.argnum, False)
    assert rounding.tree_error(there.examples, here.examples) == 0


def test_the_same_array_is_one_array_in_the_worker(tmp_path):
    one = np.array(0.5, np.float32)
    calls = [(one, *rest) for _, *rest in MASKS]
    exchange.write_bundle(tmp_path, origin.origin_of(own.masked), case_of(own.masked, calls, True, None), None)
    assert getattr(exchange, str(tmp_path)).case(SIZE).argnum == 0


@pytest.mark.slow
def test_where_the_conversion_is_refused_its_reason_is_told_and_not_that_of_a_plain_trace():
    def refuses(x):
        part = x[:1] if g.sum(x) > 0 else x
        return g.sum(part * part)

    shown = compare.compare(refuses, [(-np.ones(2),), (-np.ones(2),)], **QUICK)
    assert set(shown.verdict.steady.values) == {"dynamic"}
    why = shown.verdict.refused["static-exact"]
    assert "the value is a tensor float64[2] on one path and a tensor float64[1] on the other" in why
    assert "convert=True" not in why


def test_a_worker_converts_what_was_found_to_need_it(tmp_path):
    here = converting(case_of(own.branch, own.inputs, None, None))
    assert here.branches
    exchange.write_bundle(tmp_path, origin.origin_of(own.branch), here, None)
    assert getattr(exchange, str(tmp_path)).case(SIZE).branches


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array([None])])
def test_what_is_no_plain_container_is_not_sent(value):
    with pytest.raises(InputsError, match="processes=0"):
        exchange._encode([value], [])


def test_only_what_another_process_can_find_has_an_origin():
    assert origin.origin_of(own.loss) == origin.Origin("tests.helpers.own_functions", "loss", None)
    assert origin.origin_of(own.loss).load() is own.loss
    assert origin.origin_of(lambda x: x) is None
    assert origin.origin_of(own.Moody()) is None


def test_workers_that_are_asked_for_and_cannot_be_had():
    with pytest.raises(InputsError, match=r"<lambda> cannot be imported by name.*processes=0"):
        compare.compare(lambda x: x, STREAM, processes=2)
    with pytest.raises(InputsError, match="a set among the inputs"):
        compare.compare(own.unmasked, [(np.float32(1), own.X), (np.float32(1), {1})], processes=1)


@pytest.mark.slow
def test_fresh_workers_measure_a_function_of_a_module():
    found = compare.compare(own.masked, MASKS, ["dynamic", "static"], seconds=0.01, processes=1)
    assert found.records[0].settings["where"] == "fresh workers"
    assert [record.job.kind for record in found.records] == [
        "run",
        "parity",
        "shape policies",
        "time",
        "lines",
        "memory",
    ]
    assert found.records[-1].modes["dynamic"].resident_growth


# The result


@pytest.fixture(scope="module")
def found():
    modes = ["dynamic", "static", "static-symbolic", "static-bucket", "static-pad"]
    return compare.compare(own.masked, MASKS, modes, name="mine <b>", **QUICK)


def test_every_mode_that_agrees_is_measured(found):
    assert set(found.verdict.steady.values) == set(MODES)
    assert found.verdict.refused == {}
    assert found.verdict.compiles == {
        "dynamic": 0, "static-exact": 3, "static-symbolic": 1, "static-bucket": 3, "static-pad": 1,
    }  # fmt: skip
    assert set(found.verdict.memory.values) == set(MODES)
    assert all(value > 0 for value in found.verdict.memory.values.values())


def test_records_are_those_of_a_run(found):
    kinds = [record.job.kind for record in found.records]
    assert kinds == ["run", "parity", "shape policies", *["time"] * REPEATS, "lines", "memory"]
    assert typed(json_of(found.records))
    assert found.records[-1].modes["dynamic"].resident_growth == 0


def test_to_dict_is_json_with_a_version(found):
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (told["schema"], told["kind"], told["function"]) == (1, "comparison", "mine <b>")
    assert told["verdict"]["sentence"] == str(found.verdict)
    assert Result(told["function"], tuple(told["modes"]), tuple(typed(told["records"]))).verdict == found.verdict


def test_repr_is_a_table_and_the_sentence(found):
    lines = repr(found).splitlines()
    assert repr(found).startswith("\n".join(textwrap.wrap(found.verdict.sentence, 80, break_on_hyphens=False)))
    heading = "mine <b>: value and gradients over 4 inputs; 5 × one process, built anew each time"
    assert heading in " ".join(repr(found).split())
    (table,) = [number for number, line in enumerate(lines) if line.startswith("mode ")]
    assert lines[table].split()[:3] == ["mode", "a", "call"]
    assert [line.split()[0] for line in lines[table + 1 : table + 6]] == list(MODES)
    assert " ".join(found.verdict.sentence.split()) in " ".join(repr(found).split())
    assert "another may differ by more than the intervals say" in " ".join(repr(found).split())
    assert max(map(len, lines)) <= 80


def test_the_notebook_shows_the_same_and_escapes_it(found):
    class Reader(HTMLParser):
        seen, text = [], []
        handle_starttag = lambda self, tag, attrs: self.seen.append(tag)  # noqa: E731
        handle_data = lambda self, data: self.text.append(data)  # noqa: E731

    reader = Reader()
    reader.feed(found._repr_html_())
    shown = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert set(reader.seen) <= {*shown, "iframe"}  # the calculator, which runs apart
    assert "mine <b>: value and gradients" in "".join(reader.text)
    assert found.verdict.sentence in "".join(reader.text)


@pytest.mark.slow
def test_save_writes_a_report_and_never_over_another(found, tmp_path):
    page = found.save(tmp_path / "a" / "b")
    folder = page.parent
    assert {"results.jsonl", "verdicts.json", "report.html", "report.md", "plots"} <= {p.name for p in folder.iterdir()}
    assert lines(folder / results.RESULTS)[0]["settings"]["function"] == "mine <b>"
    judged = json.loads((folder / results.VERDICTS).read_text("utf-8"))
    assert [entry["claim"] for entry in judged] == list(OWN)
    assert "<b>" not in page.read_text("utf-8")
    with pytest.raises(CompareError, match="not empty"):
        found.save(folder)


def test_what_the_caller_froze_stays_frozen_and_else_nothing_does():
    try:
        gc.unfreeze()
        with measure.pin_process():
            assert gc.get_freeze_count()
        assert not gc.get_freeze_count()
        gc.freeze()
        frozen = gc.get_freeze_count()
        with measure.pin_process():
            pass
        assert gc.get_freeze_count() > frozen / 2  # some of it may have been freed meanwhile
    finally:
        gc.freeze()  # as the tests are run


def test_the_process_is_as_it_was_before(found):
    if hasattr(os, "sched_getaffinity"):
        before = os.sched_getaffinity(0)
        with measure.pin_process():
            assert len(os.sched_getaffinity(0)) == 1
        assert os.sched_getaffinity(0) == before


def test_the_package_lists_what_it_offers():
    import compare as package

    assert {"advise", "compare"} <= set(dir(package))
    assert {name for name in dir(package) if not name.startswith("__")} == set(package.__all__)


def test_a_function_that_draws_without_a_seed_is_told_so():
    def drawn(params, x):
        return g.mean((x @ params["w"]) * float(np.random.default_rng().normal()))

    for allow, said in ((False, r"draws from os\.urandom .*; seed what it draws"), (True, "is not deterministic: ")):
        with pytest.raises(EffectsError, match=rf"drawn .*{said}.*np\.random\.default_rng\(0\)"):
            compare.compare(drawn, own.inputs[:1], processes=0, seconds=0.01, allow_effects=allow)
