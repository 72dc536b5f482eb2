"""Shape policies over the calls of a function: what each compiles, why, and which compiles least."""

import re

import numpy as np
import pytest

import compare
import graphs as g
from compare.engines.cases import signature
from compare.instruments import inspection
from compare.records import results
from compare.records.cells import Time
from compare.records.job import Job
from compare.records.own import PolicyCompile, PolicyCount, ShapePolicies
from compare.records.record import records_of
from compare.report import compiled
from compare.report import function as page
from compare.report.blocks import Table
from compare.subjects.case import case_of
from static.call.jit import LIMIT
from tests.helpers import own_functions as own
from tests.helpers.claim_records import BASE, cell
from tests.helpers.own_functions import MASKS, QUICK, STREAM
from tests.helpers.records import typed

JOB = Job("parity", "f", "given")
DIMS = "dims=(('d0',),)"


def look(f, calls):
    return inspection.shape_policies(JOB, case_of(f, calls, None, None))


def rows(length, count=4):
    return [(own.PARAMS, np.ones((length + i, 4), np.float32)) for i in range(count)]


def loop(params, x):
    h = g.zeros(3, dtype=np.float32)
    for row in x:
        h = g.tanh(row @ params["w"] + h)
    return g.sum(h)


def times(params, x, n):
    return g.mean(x @ params["w"]) * n


def compiles(record):
    return {name: len(row.compiles) if row.status == "ok" else None for name, row in record.policies.items()}


def test_calls_of_four_lengths_compile_once_where_the_size_is_symbolic():
    record = look(own.loss, rows(3))
    assert compiles(record) == {"exact": 4, "auto": 4, "symbolic": 1, "bucket": None, "pad": None}
    assert [(one.call, one.reason) for one in record.policies["auto"].compiles] == [
        (1, "first call"),
        (2, "x: dim 0 was 3, now 4"),
        (3, "x: dim 0 was 4, now 5"),
        (4, "x: dim 0 was 5, now 6"),
    ]
    assert "reaches it by mean" in record.policies["pad"].reason
    assert compiled.policy_sentence([record]) == (
        "Use shapes='symbolic', dims=(None, ('d0', None)): 1 compile instead of 4 for 4 shapes."
    )


def test_a_mask_allows_padding_and_what_it_computes_more_is_counted():
    record = look(own.masked, MASKS)
    assert compiles(record) == {"exact": 3, "auto": 3, "symbolic": 1, "bucket": 3, "pad": 1}
    # lengths 3, 6 and 9, once in x and once in the mask: to 4, 8 and 16, and to 9 each
    assert record.policies["bucket"].padding == pytest.approx((4 + 8 + 16) / (3 + 6 + 9))
    assert record.policies["pad"].padding == pytest.approx(27 / 18)
    assert compiled.cheapest_policy(record) == "symbolic"  # of two that compile once the one that pads less


def test_a_loop_over_rows_has_one_graph_where_its_control_flow_is_converted():
    record = look(loop, rows(3))
    assert compiles(record)["symbolic"] == 1
    assert "convert=True: 1 compile instead of 4 for 4 shapes" in compiled.policy_sentence([record])
    assert "convert" not in record.policies["auto"].options


def test_a_branch_on_a_value_is_converted_under_every_policy():
    record = look(own.branch, rows(3))
    assert [row.options.endswith("convert=True") for row in record.policies.values()] == [True] * 5


def test_static_values_are_compiled_for_under_every_policy():
    record = look(times, [(*call, n) for n, call in enumerate(rows(3, 2) * 2)])
    assert compiles(record)["symbolic"] == 4
    assert compiled.policy_sentence([record]) == "No shape policy saves a compile: 4 shapes of calls need 4 compiles."
    assert compiled.policy_reasons(record.policies["symbolic"]) == "a static value: 0, 1, 2, 3"


@pytest.mark.parametrize(
    ("values", "why"),
    [((1, 2, 3), "1, 2, 3"), ((True, False, True), "True, False"), (("a", "b"), "'a', 'b'"), ((None, 2), None)],
)
def test_calls_that_differ_only_in_a_value_of_pythons_compile_once_for_each(values, why):
    def f(params, x, value):
        return g.mean(x @ params["w"]) * (2 if value in (None, "a") else 1)

    record = look(f, [(*own.inputs[0], value) for value in values])
    kinds = len(dict.fromkeys(values))
    assert compiles(record) == dict.fromkeys(("exact", "auto", "symbolic"), kinds)
    assert (
        compiled.policy_sentence([record])
        == f"No shape policy saves a compile: {kinds} kinds of calls need {kinds} compiles."
    )
    if why:
        assert compiled.policy_reasons(record.policies["auto"]) == f"a static value: {why}"


def test_calls_of_one_shape_ask_no_question():
    assert look(own.loss, own.inputs * 3) is None
    assert compiled.policy_sentence([]) == ""


def test_the_options_are_those_of_the_function_as_the_user_calls_it():
    assert look(own.square, STREAM).policies["pad"].options == f"shapes='pad', {DIMS}, buckets=(9,)"
    assert look(g.sum, STREAM).policies["symbolic"].options == "shapes='symbolic'"  # it is in no file of the user's
    array = [(own.PARAMS["w"], np.ones((n, 4), np.float32)) for n in (2, 3)]
    assert "dims=(None, ('d0', None))" in look(product, array).policies["symbolic"].options


def product(w, x):
    return g.mean(x @ w)


def test_more_shapes_than_are_kept_are_not_looked_at():
    record = look(g.sum, [(np.ones(n + 1, np.float32),) for n in range(LIMIT + 3)])
    assert (record.shapes, record.left_out) == (LIMIT, 3)
    assert compiles(record)["exact"] == LIMIT
    assert "for the first 64 shapes" in compiled.policy_sentence([record])


def test_where_no_graph_holds_the_function_nothing_is_advised():
    refused = PolicyCount("unsupported", "ControlFlowError: no", "shapes='auto'", [])
    record = ShapePolicies("f", "given", shapes=2, left_out=0, policies={"auto": refused})
    assert compiled.policy_sentence([record]) == ""
    assert compiled.policy_reasons(refused) == "ControlFlowError: no"


def test_the_sizes_of_a_row_are_cut_and_reasons_without_sizes_stay():
    changes = [PolicyCompile(n, f"x: dim 0 was {n}, now {n + 1}") for n in range(20)]
    row = PolicyCount("ok", None, "shapes='auto'", [PolicyCompile(1, "first call"), *changes])
    assert compiled.policy_reasons(row) == f"x, dim 0: {', '.join(map(str, range(compiled.MOST_SIZES)))}, …"
    nested = PolicyCompile(2, "the arguments are nested differently")
    row = PolicyCount("ok", None, "shapes='auto'", [PolicyCompile(1, "first call"), nested])
    assert compiled.policy_reasons(row) == nested.reason


@pytest.mark.parametrize(
    ("symbolic", "said"),
    [
        (1.0, "Use shapes='symbolic', dims=(None, ('d0', None)): 1 compile instead of 4 for 4 shapes; a call is as"),
        (2.0, "shapes='symbolic', dims=(None, ('d0', None)) compiles least: 1 compile instead of 4 for 4 shapes; but"),
        (0.5, "Use shapes='symbolic', dims=(None, ('d0', None)): 1 compile instead of 4 for 4 shapes; a call takes"),
    ],
)
def test_the_time_of_a_call_stands_beside_the_count_where_it_was_measured(symbolic, said):
    seconds = {"dynamic": 3.0, "static-exact": 1.0, "static-symbolic": symbolic}
    timings = typed(cell("f", {mode: {"seconds": of_one * BASE} for mode, of_one in seconds.items()}, "given"))
    assert records_of(timings, Time)
    assert compiled.policy_sentence([*timings, look(own.loss, rows(3))]).startswith(said)


def test_the_record_is_read_again_as_it_was_written():
    record = look(own.masked, MASKS)
    assert results.parse_line(results.encode(record)) == record


def test_the_section_has_a_row_for_each_policy_and_a_row_for_each_compile():
    section = page.recompiles([look(own.masked, MASKS)])
    table, each = (block for block in section.blocks if isinstance(block, Table))
    assert table.headers == ("policy", "compiles", "elements", "why")  # no call was timed
    assert [row[1] for row in table.rows] == ["3", "3", "1", "3", "1"]
    assert [row[-1] for row in table.rows[1:3]] == ["x, dim 0: 3, 6, 9", "first call"]
    assert each.rows[1] == ("2", "x: dim 0 was 3, now 6")


@pytest.mark.slow
def test_a_function_of_four_lengths_is_told_the_cheapest_policy_end_to_end(tmp_path):
    found = compare.compare(own.loss, rows(3), **QUICK)
    assert len({signature(call) for call in rows(3)}) == 4
    told = "Use shapes='symbolic', dims=(None, ('d0', None)): 1 compile instead of 4 for 4 shapes"
    shown = repr(found)
    assert told in " ".join(shown.split())
    assert shown.startswith(found.verdict.sentence[:40])
    assert max(map(len, shown.splitlines())) <= 80
    assert told.replace("'", "&#x27;") in found._repr_html_()
    written = found.save(tmp_path / "out")
    markdown = re.sub(r"\\(.)", r"\1", written.with_suffix(".md").read_text())
    assert markdown.startswith("# loss: compile it, or run it eagerly?\n")
    assert markdown.index(told) < markdown.index("## Recompiles") < markdown.index("x: dim 0 was 3, now 4")
    assert markdown.index(found.verdict.sentence[:30]) < markdown.index(told)


@pytest.mark.slow
def test_a_function_of_one_shape_has_no_such_section(tmp_path):
    found = compare.compare(own.loss, own.inputs, **QUICK)
    assert "shapes=" not in repr(found)
    assert "Recompiles" not in found.save(tmp_path / "out").with_suffix(".md").read_text()
    assert records_of(found.records, ShapePolicies) == []


@pytest.mark.slow
def test_without_a_static_mode_no_policy_is_looked_at():
    found = compare.compare(own.square, STREAM, ["dynamic"], **QUICK)
    assert records_of(found.records, ShapePolicies) == []
