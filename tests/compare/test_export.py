"""Results in the formats of others, read back by the others where they are installed."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

from compare.cli.command import graphduel
from compare.errors import NothingMeasuredError, ResultsError
from compare.records import results
from compare.records.job import KINDS
from compare.report import formats as export
from graphs.files import write_file
from tests.helpers.records import typed

ROW = {"status": "ok", "reason": None, "calls_per_block": 4, "warmup": [0.5], "stream": None}
PARITY_ROW = {"status": "ok", "output_error": 0.0, "gradient_error": 0.0, "tolerance": 1e-4, "reason": None}
BLOCKS = {"dynamic": [0.2, 0.21, 0.22], "static-exact": [0.1, 0.11, 0.12]}
ENVIRONMENT = {"cpu": "one", "python": "CPython 3.11.7", "numpy": "2.4.6", "system": "Linux 6", "load": 0.5}


def parity(workload, **change):
    modes = {mode: {**PARITY_ROW, "status": change.get(mode.replace("-", "_"), "ok")} for mode in BLOCKS}
    place = {"kind": "parity", "workload": workload, "size": "small"}
    return {**place, "agree": not change, "arms": modes, "same_graph": True, "kernel_calls": {}}


def time(workload, process):
    modes = {mode: {**ROW, "blocks": blocks} for mode, blocks in BLOCKS.items()}
    told = {"environment": ENVIRONMENT, "host": "host-1", "seed": 0}
    return {"kind": "time", "workload": workload, "size": "small", "process": process, "arms": modes, **told}


RECORDS = [parity("tiny"), *(time("tiny", process) for process in range(2))]


def write(directory, records=RECORDS):
    directory.mkdir(exist_ok=True)
    for record in typed(records):
        results.append(directory / results.RESULTS, record)
    return directory


def test_a_benchmark_for_each_mode_and_a_run_for_each_process():
    found = export.pyperf(typed(RECORDS))
    names = [benchmark["metadata"] for benchmark in found["benchmarks"]]
    assert names == [{"name": f"tiny/small, {mode}", "unit": "second"} for mode in BLOCKS]
    runs = found["benchmarks"][1]["runs"]
    assert [run["values"] for run in runs] == [[pytest.approx(0.11)]] * 2
    assert [run["metadata"]["graphduel_process"] for run in runs] == [0, 1]
    assert runs[0]["warmups"] == [[4, 0.5]]
    assert runs[0]["metadata"]["cpu_model_name"] == "one"
    assert runs[0]["metadata"]["hostname"] == "host-1"


def test_one_mode_is_named_by_its_cell():
    assert [b["metadata"]["name"] for b in export.pyperf(typed(RECORDS), "dynamic")["benchmarks"]] == ["tiny/small"]


def test_a_cell_of_one_process_is_left_out_and_a_run_of_one_is_refused():
    more = [parity("other"), time("other", 0)]
    found = export.pyperf(typed([*RECORDS, *more]))
    assert {b["metadata"]["name"] for b in found["benchmarks"]} == {f"tiny/small, {mode}" for mode in BLOCKS}
    with pytest.raises(NothingMeasuredError, match="run with --processes 2 or more"):
        export.pyperf(typed(more))


def longer():
    """The records of a run with as many processes asked for, of which noise made more rounds and one more process."""
    more = [time("tiny", process) for process in range(3)]
    for record in more:
        record["arms"] = {mode: {**row, "blocks": row["blocks"] * 2} for mode, row in record["arms"].items()}
    return [{"kind": "run", "run": "r", "at": "2030-01-02", "settings": {"processes": 2}}, parity("tiny"), *more]


def drifting(records):
    """The records, each process slower than the one before: without any spread there is nothing to test."""
    return [
        {**record, "arms": {mode: {**row, "blocks": [b * (1 + record["process"] / 50) for b in row["blocks"]]}
                            for mode, row in record["arms"].items()}}
        if record["kind"] == "time" else record
        for record in records
    ]  # fmt: skip


def test_two_runs_with_the_same_settings_have_as_many_values_each():
    for mode in BLOCKS:
        (one,), (other,) = (export.pyperf(typed(records), mode)["benchmarks"] for records in (RECORDS, longer()))
        first, second = ([value for run in found["runs"] for value in run["values"]] for found in (one, other))
        assert len(first) == 2
        assert first == pytest.approx(second)


def test_an_mode_that_disagreed_is_not_exported():
    records = [parity("tiny", static_exact="disagree"), *RECORDS[1:]]
    assert [b["metadata"]["name"] for b in export.pyperf(typed(records))["benchmarks"]] == ["tiny/small, dynamic"]


@pytest.mark.parametrize(("records", "mode"), [([parity("tiny")], None), (RECORDS, "static-pad"), ([], None)])
def test_without_times_there_is_nothing_to_export(records, mode):
    with pytest.raises(NothingMeasuredError, match="no steady times") as caught:
        export.pyperf(typed(records), mode)
    assert caught.value.exit_code == 5


def test_the_command_writes_a_file_or_stdout(tmp_path):
    directory, out = write(tmp_path / "run"), tmp_path / "out.json"
    done = CliRunner().invoke(graphduel, ["export", str(directory), "--format", "pyperf", "--out", str(out)])
    assert done.exit_code == 0
    assert json.loads(out.read_text()) == export.pyperf(typed(RECORDS))
    shown = CliRunner().invoke(graphduel, ["export", str(directory), "--mode", "dynamic"])
    assert json.loads(shown.stdout) == export.pyperf(typed(RECORDS), "dynamic")


def test_a_folder_without_results_is_a_usage_error(tmp_path):
    done = CliRunner().invoke(graphduel, ["export", str(tmp_path)])
    assert done.exit_code == 2
    assert "holds no results.jsonl; make it with `graphduel run`" in done.stderr


@pytest.mark.peers
def test_pyperf_reads_and_compares_what_is_exported(tmp_path):
    pyperf = pytest.importorskip("pyperf")
    files = []
    for mode in BLOCKS:
        files.append(tmp_path / f"{mode}.json")
        files[-1].write_text(json.dumps(export.pyperf(typed(RECORDS), mode)))
    suite = pyperf.BenchmarkSuite.load(str(files[0]))
    (benchmark,) = suite.get_benchmarks()
    assert benchmark.get_name() == "tiny/small"
    assert benchmark.get_values() == pytest.approx((0.21, 0.21))
    assert benchmark.get_nrun() == 2
    assert benchmark.get_loops() == 4
    command = [sys.executable, "-m", "pyperf", "compare_to", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1.91x faster" in done.stdout  # 0.21 / 0.11
    for path, (mode, records) in zip(files, (("dynamic", longer()), ("static-exact", RECORDS)), strict=True):
        path.write_text(json.dumps(export.pyperf(typed(drifting(records)), mode)))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ERROR" not in done.stdout + done.stderr


def test_a_function_of_a_framework_has_a_cold_process_before_those_it_was_asked_for():
    cold = {**time("tiny", 0), "cache": "cold"}
    cold["arms"] = {mode: {**row, "blocks": []} for mode, row in cold["arms"].items()}
    warm = [{**time("tiny", process), "cache": "warm"} for process in (1, 2, 3)]
    run = {"kind": "run", "run": "r", "at": "2030-01-02", "settings": {"processes": 3}}
    (found, _) = export.pyperf(typed([run, parity("tiny"), cold, *warm]))["benchmarks"]
    assert [each["metadata"]["graphduel_process"] for each in found["runs"]] == [1, 2, 3]


# pytest-benchmark and asv

RUN = {
    "kind": "run", "run": "r", "at": "2030-01-02T03:04:05+00:00", "settings": {"processes": 5}, "host": "host-1",
    "environment": {**ENVIRONMENT, "commit": "abc", "logical_cores": 2},
}  # fmt: skip
MEANS = [0.21, 0.42, 0.63, 0.21 * 2.5, 0.21 * 20]


def varying():
    """Five processes of a mode, whose means are `MEANS` seconds."""
    return [RUN, parity("tiny"), *(
        {**record, "arms": {mode: {**row, "blocks": [b * MEANS[record["process"]] / 0.21 for b in row["blocks"]]}
                            for mode, row in record["arms"].items()}}
        for record in (time("tiny", process) for process in range(5))
    )]  # fmt: skip


def test_pytest_benchmark_has_the_statistics_of_the_processes():
    found = export.pytest_benchmark(typed(varying()), "dynamic")
    (benchmark,) = found["benchmarks"]
    assert (benchmark["name"], benchmark["fullname"]) == ("tiny/small", "tiny/small")
    stats = benchmark["stats"]
    assert stats["data"] == pytest.approx(MEANS)
    assert {name: stats[name] for name in ("min", "max", "mean", "median", "q1", "q3", "iqr", "total", "ops")} == {
        "min": pytest.approx(0.21), "max": pytest.approx(4.2), "mean": pytest.approx(1.197),
        "median": pytest.approx(0.525), "q1": pytest.approx(0.42), "q3": pytest.approx(0.63),
        "iqr": pytest.approx(0.21), "total": pytest.approx(5.985), "ops": pytest.approx(1 / 1.197),
    }  # fmt: skip
    assert (stats["outliers"], stats["ld15iqr"], stats["hd15iqr"]) == ("1;1", pytest.approx(0.21), pytest.approx(0.63))
    assert (stats["rounds"], stats["iterations"]) == (5, 4)
    assert (found["datetime"], found["commit_info"]["id"]) == ("2030-01-02T03:04:05+00:00", "abc")
    assert found["machine_info"]["cpu"] == {"brand_raw": "one", "count": 2}


def test_one_process_has_statistics_without_spread():
    (benchmark,) = export.pytest_benchmark(typed(RECORDS[:2]), "dynamic")["benchmarks"]
    assert (benchmark["stats"]["stddev"], benchmark["stats"]["iqr"], benchmark["stats"]["rounds"]) == (0, 0, 1)


def test_asv_has_a_benchmark_for_each_cell_and_a_parameter_for_its_modes():
    found = export.asv(typed(varying()))
    assert (found["version"], found["commit_hash"], found["params"]["machine"]) == (2, "abc", "host-1")
    row = dict(zip(found["result_columns"], found["results"]["tiny/small"], strict=True))
    assert row["params"] == [["'dynamic'", "'static-exact'"]]
    assert row["result"] == pytest.approx([0.525, 0.275])
    assert row["stats_q_25"][0] == pytest.approx(0.42)
    assert row["samples"][0] == pytest.approx(MEANS)
    assert found["date"] == row["started_at"] == 1893553445000


@pytest.mark.peers
def test_asv_reads_what_is_exported(tmp_path):
    asv = pytest.importorskip("asv.results")
    path = tmp_path / "results" / "host-1" / "abc-existing.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(export.asv(typed(varying()))))
    read = asv.Results.load(str(path), machine_name="host-1")
    assert read.commit_hash == "abc"
    assert read.get_result_value("tiny/small", [["'dynamic'", "'static-exact'"]]) == pytest.approx([0.525, 0.275])
    assert [stats["q_75"] for stats in read.get_result_stats("tiny/small", [["'dynamic'", "'static-exact'"]])] == (
        pytest.approx([0.63, 0.33])
    )


def test_pytest_benchmark_reads_and_compares_what_is_exported(tmp_path):
    pytest.importorskip("pytest_benchmark")
    for mode in BLOCKS:
        (tmp_path / f"{mode}.json").write_text(json.dumps(export.pytest_benchmark(typed(varying()), mode)))
    command = [
        sys.executable,
        "-m",
        "pytest_benchmark",
        "compare",
        *(str(tmp_path / f"{mode}.json") for mode in BLOCKS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.count("tiny/small") == 2, done.stdout


# The schema as a JSON Schema


def test_every_kind_of_line_has_its_schema():
    found = export.json_schema()
    kinds = [found["$defs"][one["$ref"].removeprefix("#/$defs/")] for one in found["oneOf"][:-1]]
    assert [kind["properties"]["kind"] for kind in kinds] == [{"enum": [name]} for name in KINDS]
    assert found["properties"]["schema"] == {"const": results.VERSION}


def test_types_become_what_json_schema_calls_them():
    found = export.json_schema()["$defs"]
    assert found["Time"]["properties"]["process"] == {"type": "integer"}
    assert found["Time"]["properties"]["arms"]["additionalProperties"] == {"$ref": "#/$defs/TimeRow"}
    mode = found["TimeRow"]
    assert mode["required"] == ["status", "reason"]
    block = {"type": "number", "minimum": 1e-18, "maximum": 1e18}
    assert mode["properties"]["blocks"] == {"type": "array", "items": block, "default": []}
    assert mode["properties"]["reason"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert mode["properties"]["status"] == {"enum": ["disagree", "failed", "ok", "unsupported"]}


@pytest.mark.peers
@pytest.mark.parametrize(
    ("record", "valid"),
    [
        (RECORDS[0], True),
        (RECORDS[1], True),
        ({"kind": "energy", "joules": 3}, True),
        ({**RECORDS[1], "process": "1"}, False),
        ({**RECORDS[1], "arms": {"dynamic": {"status": "ok"}}}, False),
    ],
)
def test_a_validator_says_of_lines_what_the_reader_says(record, valid):
    jsonschema = pytest.importorskip("jsonschema")
    line = {"schema": results.VERSION, **record}
    with nullcontext() if valid else pytest.raises(ResultsError):
        results.parse_line(json.dumps(line).encode())
    assert jsonschema.Draft202012Validator(export.json_schema()).is_valid(line) is valid


def test_the_command_prints_the_schema():
    assert json.loads(CliRunner().invoke(graphduel, ["schema"]).stdout) == export.json_schema()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without named pipes")
def test_what_is_no_file_is_written_into_and_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(pipe.read_bytes)
        write_file(pipe, b"{}")
        assert heard.result(10) == b"{}"
    assert pipe.is_fifo()
