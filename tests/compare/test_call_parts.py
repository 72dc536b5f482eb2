"""The parts of a compiled call: how clocks nest, what they add up to, and how they are told."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from compare.engines.torch import dynamo, spans
from compare.engines.torch.spans import ClockedCall, Clocks
from compare.errors import NothingMeasuredError
from compare.instruments import parts
from compare.own import workers
from compare.records.cells import (
    Compilations,
    CompiledRow,
    LineCost,
    Memory,
    MemoryRow,
    Parity,
    ParityRow,
    SourceLines,
    SourceLinesRow,
    Time,
    TimeRow,
)
from compare.records.job import Budget, Job
from compare.records.own import (
    GUARDS,
    KERNELS,
    CallParts,
    CallPartsRow,
    CompileEvent,
    CompileTrace,
    CompileTraceRow,
    GraphCost,
    merge_records,
)
from compare.report import compiled, formats
from compare.run.progress import Reporter
from tests.helpers import toy_framework
from tests.helpers.plans import plan_of


def test_a_clock_counts_what_no_clock_inside_it_counts(monkeypatch):
    now = 0

    def spend(nanoseconds):
        nonlocal now
        now += nanoseconds

    monkeypatch.setattr(spans, "perf_counter_ns", lambda: now)
    clocks = Clocks()
    kernels = clocks.around(spans.KERNELS, None, lambda: spend(4))
    graph = clocks.around(spans.GRAPH, "0/0", lambda: (spend(2), kernels(), kernels()))
    call = clocks.around(spans.CALL, "", lambda: (graph(), spend(1)))
    sample = clocks.sample(call)
    assert dict(sample.runs) == {(spans.KERNELS, "0/0"): 2, (spans.GRAPH, "0/0"): 1, (spans.CALL, ""): 1}
    assert sample.inside[spans.GRAPH, "0/0"] == 2
    assert dict(sample.seen) == {(spans.KERNELS, "0/0"): 8, (spans.GRAPH, "0/0"): 2, (spans.CALL, ""): 1}
    assert sample.graphs() == {"0/0": 1}


def test_clocks_that_are_off_count_nothing_and_doubled_ones_run_twice():
    clocks = Clocks()
    call = clocks.around(spans.CALL, "", lambda: None)
    assert clocks.sample(call, doubled=True).runs == {(spans.CALL, ""): 2}
    before = clocks.sample(lambda: None)
    call()
    assert before.runs == {}


def test_what_a_clock_costs_is_taken_off_inside_of_it_and_around_it():
    seen = {(spans.CALL, ""): 100.0, (spans.GRAPH, "0/0"): 50.0}
    sample = ClockedCall(seen, {(spans.CALL, ""): 1, (spans.GRAPH, "0/0"): 2}, {(spans.CALL, ""): 2, ("", ""): 1})
    assert sample.without(1.0, 3.0).seen == {(spans.CALL, ""): 93.0, (spans.GRAPH, "0/0"): 48.0}
    assert 0 <= Clocks().inner_share() <= 1


def sample(graphs=1, kernels=True, backward=True):
    """A call of 100 µs or more, in ns: of each graph 10 around its kernels, which take 20."""
    seen = {(spans.AROUND, ""): 5e3, (spans.CALL, ""): 40e3, (spans.ENGINE, ""): 6e3}
    for number in range(graphs):
        seen[spans.GRAPH, f"0/{number}"] = 10e3
        seen |= {(KERNELS, f"0/{number}"): 20e3} if kernels else {}
        seen |= {(spans.BACKWARD, f"0/{number}"): 4e3} if backward else {}
    return ClockedCall(seen, dict.fromkeys(seen, 1))


@pytest.mark.parametrize(
    ("call", "entry", "whole", "parts"),
    [
        (
            sample(),
            None,
            True,
            {KERNELS: 20, spans.WRAPPER: 14, GUARDS: 3, spans.ENTRY: 37, spans.AUTOGRAD: 6, spans.AROUND: 5},
        ),
        (
            sample(graphs=3),
            (9e-6, 4e-6),
            True,
            {KERNELS: 60, spans.WRAPPER: 42, GUARDS: 3, spans.ENTRY: 17, spans.BETWEEN: 20}
            | {spans.AUTOGRAD: 6, spans.AROUND: 5},
        ),
        (
            sample(kernels=False),
            (50e-6, 0.0),
            True,
            {spans.GRAPHS: 14, GUARDS: 3, spans.ENTRY: 37, spans.AUTOGRAD: 6, spans.AROUND: 5},
        ),
    ],
)
def test_parts_are_those_of_clocks_and_what_dynamo_takes_for_each_graph(call, entry, whole, parts):
    found = spans.split([call], 3e-6, entry, whole=whole)
    assert {part: seconds * 1e6 for part, seconds in found.items()} == pytest.approx(parts)
    assert sum(found.values()) == pytest.approx(call.whole / 1e9)


def test_without_a_clock_around_the_call_the_rest_is_between_graphs():
    seen = {(spans.AROUND, ""): 45e3, (spans.GRAPH, "0/0"): 10e3, (spans.GRAPH, "1/0"): 10e3}
    found = spans.split([ClockedCall(seen, dict.fromkeys(seen, 1))], 3e-6, (9e-6, 4e-6), whole=False)
    micros = {part: seconds * 1e6 for part, seconds in found.items()}
    assert micros == pytest.approx({spans.GRAPHS: 20, GUARDS: 3, spans.ENTRY: 18, spans.BETWEEN: 24})


def test_calls_that_others_disturbed_do_not_count():
    slow = ClockedCall({key: 10 * spent for key, spent in sample().seen.items()}, sample().runs)
    assert spans.split([slow, sample()], 0.0, None, whole=True)[KERNELS] == pytest.approx(20e-6)


def test_graphs_come_with_their_lines_the_dearest_first():
    seen = dict(sample(graphs=2).seen)
    seen[KERNELS, "0/1"] = 50e3
    dear, cheap = spans.graph_costs([ClockedCall(seen, dict.fromkeys(seen, 1))], {"0/1": {"m.py:3": 2}})
    assert (dear.name, dear.lines, dear.runs) == ("0/1", {"m.py:3": 2}, 1)
    assert (dear.kernels, dear.around) == pytest.approx((50e-6, 14e-6))
    assert (cheap.name, cheap.lines) == ("0/0", {})


def test_ops_of_a_graph_belong_to_the_innermost_line_of_the_users(tmp_path):
    users, library = tmp_path / "model.py", spans.__file__

    def node(op, *places):
        trace = "".join(f'  File "{file}", line {line}, in f\n    x\n' for file, line in places)
        return SimpleNamespace(op=op, meta={"stack_trace": trace} if places else {})

    nodes = [
        node("placeholder"),
        node("call_function", (users, 3), (library, 9)),
        node("call_method", (users, 3), (users, 7)),
        node("call_function", (library, 9)),
    ]
    graph = SimpleNamespace(graph=SimpleNamespace(nodes=nodes))
    assert spans.lines_of(graph) == {"model.py:3": 1, "model.py:7": 1, "": 1}


# How they are told ----------------------------------------------------------------------------------------------------


PARTS = {KERNELS: 20e-6, spans.WRAPPER: 30e-6, GUARDS: 4e-6, spans.ENTRY: 16e-6, spans.AROUND: 10e-6}
PLACE = {"workload": "f", "size": "given", "eager": "eager"}


def records(breaks=None, outside=None, slower=2.0):
    row = CallPartsRow(
        "ok", None, whole=82e-6, parts=PARTS, guards=12, ops={"m.py:3": 2, "m.py:4": 3}, outside=outside or {},
        graphs=[GraphCost("0/0", 1, 20e-6, 30e-6, {"m.py:3": 2, "": 1})], code={"m.py:3": "x = f(x)"},
    )  # fmt: skip
    modes = {"eager": CompiledRow("ok", None), "compile": CompiledRow("ok", None, breaks=breaks or {})}
    rows = {
        mode: TimeRow("ok", None, calls_per_block=1, blocks=[seconds] * 9)
        for mode, seconds in (("eager", 40e-6), ("compile", slower * 40e-6))
    }
    memory = {mode: MemoryRow("ok", None, peak=1 << 20, held=2 << 20, resident_growth=80 << 20) for mode in modes}
    right = dict.fromkeys(modes, ParityRow("ok", None, 0.0, 0.0, 1e-4))
    return [
        Parity(**PLACE, agree=True, modes=right, same_graph=None, kernel_calls={}),
        Compilations(**PLACE, version="1", modes=modes),
        *(Time(**PLACE, process=process, modes=rows, cache="warm") for process in (1, 2, 3)),
        Memory(**PLACE, modes=memory, counted="malloc"),
        CallParts(workload="f", size="given", modes={"compile": row}),
    ]


def test_the_answer_says_where_a_warm_call_spends_its_time_and_what_stays():
    said = compiled.sentences(records())
    assert (
        "A warm call of compile takes 82 µs: AOTAutograd's wrapper 30 µs, kernels 20 µs, Dynamo's entry 16 µs, Python "
        "around the call 10 µs and 12 guards 4 µs." in said
    )
    assert (
        "compile has no graph break, and yet a call takes 2× the time of eager: its kernels take 20 µs, and what is "
        "around them 60 µs." in said
    )
    assert (
        "After its first calls compile has 80 MiB more resident, of which malloc holds 2 MiB; a step needs 1 MiB at "
        "its peak." in said
    )


def test_the_first_screen_of_the_page_says_why_a_mode_without_breaks_is_slower():
    (said,) = compiled.whys(records())
    assert said.startswith("compile has no graph break, and yet a call takes 2× the time of eager")
    assert compiled.whys(records(), {"compile"}) == []
    advised = records(breaks={"a print\nSet a switch.\nSee a page": 1})
    assert compiled.whys(advised) == ["compile broke the graph: a print"]
    assert "compile broke the graph: a print. Set a switch. See a page" in compiled.sentences(advised)
    (table,) = compiled.reasons(advised).blocks
    assert [row[:3] for row in table.rows if row[0] == compiled.BROKE] == [
        (compiled.BROKE, "a print. Set a switch. See a page", "compile")
    ]


def test_nothing_is_explained_that_is_not_slower_or_has_breaks():
    assert not [words for words in compiled.sentences(records(slower=0.5)) if "and yet" in words]
    assert not [words for words in compiled.sentences(records(breaks={"a print": 1})) if "and yet" in words]


def test_lines_that_run_between_graphs_are_told_with_their_ops():
    said = compiled.sentences(records(outside={"m.py:4": LineCost(9e-6, 1)}))
    assert "Between its graphs compile runs eager: m.py:4 (1 of 3 ops, 9 µs)." in said


def test_the_page_has_parts_graphs_and_coverage_by_line():
    page = compiled.parts(records(outside={"m.py:4": LineCost(9e-6, 1)}))
    assert page is not None
    parts, graphs, lines = [block for block in page.blocks if isinstance(block, compiled.Table)]
    assert ("kernels", "20 µs", "24%") in parts.rows
    assert parts.rows[-2:] == (("all parts", "80 µs", "98%"), ("a call, with no clock in it", "82 µs", "100%"))
    assert graphs.rows == (("compile 0/0", "1", "20 µs", "30 µs", "m.py:3 (2), elsewhere (1)"),)
    assert lines.rows == (("m.py:3", "x = f(x)", "2 of 2", ""), ("m.py:4", "", "2 of 3", "9 µs"))


def test_a_number_of_threads_has_its_own_parts_and_what_all_share_is_told_once():
    on_one, on_two = records(), records()
    row = on_two[-1].modes["compile"]
    row.parts = {**row.parts, KERNELS: 40e-6}
    for record in on_two:
        record.threads = 2
    said = compiled.sentences([*on_one, *on_two])
    assert len(said) == len({*said})
    starts = [f"With {threads}: A warm call of compile takes 82 µs: " for threads in ("1 thread", "2 threads")]
    assert [sum(each.startswith(start) for each in said) for start in starts] == [1, 1]
    assert "kernels 20 µs" in next(each for each in said if each.startswith(starts[0]))
    assert "kernels 40 µs" in next(each for each in said if each.startswith(starts[1]))
    shared = [each for each in said if not each.startswith("With ")]
    assert shared
    assert {*shared} <= {*compiled.sentences(on_one)}


def test_a_look_that_failed_is_told_and_shows_no_section():
    failed = CallParts(workload="f", size="given", modes={"compile": CallPartsRow("failed", "RuntimeError: off")})
    merged = [*merge_records([*records()[:-1], failed])]
    assert compiled.parts(merged) is None
    assert "Where a call of compile spends its time is not known: RuntimeError: off." in compiled.sentences(merged)


# The trace of a compiler ----------------------------------------------------------------------------------------------


def traced(process, **event):
    lines = "\n".join(f"\t{line}" for line in json.dumps(event, indent=0).splitlines())
    head = {"chromium_event": {}, "has_payload": "0"}
    return f"V1129 19:12:30.820000 {process} torch/_dynamo/utils.py:2350] {json.dumps(head)}\n{lines}\n"


def phase(letter, name, ts, **event):
    return {"ph": letter, "name": name, "ts": ts, "pid": 0, "tid": 0, "args": {"compile_id": "0/0"}, **event}


def test_a_trace_is_read_as_phases_that_lie_in_each_other():
    text = "".join(
        [
            traced(7, **phase("B", "dynamo", 5e6)),
            'V1129 19:12:30.820000 7 torch/_logging/_internal.py:1328] {"artifact": {}, "has_payload": "1"}\n\ttext\n',
            traced(7, **phase("B", "inductor", 6e6)),
            traced(8, **phase("B", "of another process", 6e6)),
            traced(7, **phase("i", "a moment", 6.5e6)),
            traced(7, **phase("E", "inductor", 8e6)),
            traced(7, **phase("E", "dynamo", 8.5e6)),
            traced(7, **phase("B", "begun and not ended", 9e6)),
        ]
    )  # fmt: skip
    assert dynamo.read_trace(text, 7) == [
        CompileEvent("dynamo", 0.0, 3.5, "0/0"),
        CompileEvent("inductor", 1.0, 2.0, "0/0"),
    ]
    assert dynamo.read_trace("not a trace\n" + text[:40], 7) == []


def test_of_a_long_trace_the_longest_phases_are_read(monkeypatch):
    monkeypatch.setattr(dynamo, "MOST_EVENTS", 2)
    ends = [(0, 1), (2, 5), (6, 8)]
    moments = [(letter, ts) for began, ended in ends for letter, ts in (("B", began), ("E", ended))]
    text = "".join(traced(7, **phase(letter, "p", ts * 1e6)) for letter, ts in moments)
    assert [event.seconds for event in dynamo.read_trace(text, 7)] == [3.0, 2.0]


def test_the_compiler_stands_beside_the_lines_in_perfetto():
    row = CompileTraceRow("ok", None, [CompileEvent("dynamo", 0.0, 3.5, "0/0")])
    trace = CompileTrace(workload="f", size="given", modes={"compile": row})
    lines = SourceLines(
        workload="f", size="given", modes={"eager": SourceLinesRow("ok", None, 3e-6, 1e-6, {"m.py:3": LineCost(2e-6)})}
    )
    events = formats.perfetto([trace, lines])["traceEvents"]
    shown = {(event["pid"], event["name"]): event for event in events if event["ph"] == "X"}
    assert {*shown} == {(2, "dynamo"), (1, "m.py:3"), (1, "elsewhere")}
    assert (shown[2, "dynamo"]["ts"], shown[2, "dynamo"]["dur"]) == (0, pytest.approx(3.5e6))
    assert shown[2, "dynamo"]["args"] == {"graph": "0/0"}
    assert [event["name"] for event in formats.perfetto([trace])["traceEvents"]][-1] == "dynamo"
    with pytest.raises(NothingMeasuredError):
        formats.perfetto([trace], "eager")


def test_who_measures_for_a_moment_waits_for_no_mode_to_compile_again():
    bench = SimpleNamespace(written="mine.py:loss")  # no engine is asked
    job = Job("time", "f", "given", budget=Budget(seconds=parts.BRIEF / 2))
    assert list(parts.of_bench(job, bench, {"torch-compile": "compile"}, {"torch-compile": 1.0})) == []


def test_traces_of_all_modes_are_kept_in_place_of_older_ones(tmp_path):
    folder, out = tmp_path / "work", tmp_path / "out"
    for mode in ("compile", "aot-eager"):
        (folder / "torch" / workers.TRACES / mode).mkdir(parents=True)
        (folder / "torch" / workers.TRACES / mode / "a.log").write_text(mode, "utf-8")
    (out / workers.TRACES / "older").mkdir(parents=True)
    workers.keep_traces(folder, out)
    kept = {path.parent.name: path.read_text("utf-8") for path in (out / workers.TRACES).rglob("*.log")}
    assert kept == {"compile": "compile", "aot-eager": "aot-eager"}


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("apart", "process", "users", "keeps"),
    [(True, 0, None, True), (True, 1, None, False), (False, 0, None, False), (True, 0, "mine", False)],
)
def test_the_first_process_of_a_mode_keeps_a_trace_where_results_are_kept(
    tmp_path, monkeypatch, apart, process, users, keeps
):
    monkeypatch.setattr(toy_framework.Toy, "traced_into", "TOY_TRACE")
    monkeypatch.delenv("TOY_TRACE", raising=False)
    if users:
        monkeypatch.setenv("TOY_TRACE", users)
    plan = plan_of("toy", "f.py:loss", "", None).within(apart=apart, folder=str(tmp_path))
    fresh = workers.Workers(plan, Reporter(), workers.Answers(tmp_path / "results.jsonl"))
    found = fresh._equip(plan.time(("toy-eager", "toy-jit"), process)).variables.get("TOY_TRACE")
    assert found == (str(tmp_path / workers.TRACES / "toy-jit") if keeps else None)
