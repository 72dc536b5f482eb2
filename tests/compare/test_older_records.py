"""Lines of kinds that earlier versions wrote: what they say is what today's records say."""

from pathlib import Path

import pytest

from compare.errors import ResultsError
from compare.records import results
from compare.records.cells import Compilations, Memory, Parity, Time
from compare.records.record import records_of


def line(process, **eager):
    """What a process that ran a framework on a workload left."""
    checked = {"output_error": 1e-7, "gradient_error": 2e-7, "tolerance": 1e-4}
    jit = {
        "status": "ok", "reason": None, "first": 2.0, "blocks": [0.25] if process else [], "compiles": 1, "useful": 8,
        "compilations": [{"reason": "a new shape", "seconds": 1.5}], "breaks": {"a print": 2}, "peak": 100, "held": 7,
    }  # fmt: skip
    return {
        "schema": 1, "kind": "framework cell", "workload": "tiny_mlp", "size": "small", "process": process,
        "arms": {"toy-eager": {"status": "ok", "reason": None, **checked, **eager}, "toy-jit": {**jit, **checked}},
        "version": "1.0", "cache": "warm" if process else "cold", "arm": "toy-jit", "host": "there", "seed": 3,
    }  # fmt: skip


@pytest.mark.parametrize("process", [0, 1])
def test_the_process_of_a_framework_is_times_and_what_stands_beside_them(process):
    records = results.unfold(results.of_json(line(process)))
    (time,), (parity,) = records_of(records, Time), records_of(records, Parity)
    assert records[-1] is time  # it tells that the job is done
    assert (time.process, time.cache, time.clock) == (process, "warm" if process else "cold", "wall")
    assert (time.base, time.seed, {record.host for record in records}) == ("toy-eager", 3, {"there"})
    assert (time.modes["toy-jit"].first, time.modes["toy-jit"].blocks) == (2.0, [0.25] if process else [])
    assert parity.agree
    assert parity.modes["toy-jit"].gradient_error == 2e-7
    assert {record.mode for record in records} == {"toy-jit"}
    if process:
        assert len(records) == 2
    else:
        (told,), (memory,) = records_of(records, Compilations), records_of(records, Memory)
        assert (told.modes["toy-jit"].made[0].seconds, told.modes["toy-jit"].breaks) == (1.5, {"a print": 2})
        assert (memory.counted, memory.modes["toy-jit"].peak, memory.modes["toy-jit"].held) == ("malloc", 100, 7)


def test_an_mode_that_was_wrong_disagrees():
    (parity,) = records_of(results.unfold(results.of_json(line(1, status="disagree", reason="off"))), Parity)
    assert (parity.agree, parity.modes["toy-eager"].status) == (False, "disagree")


REPORTS = Path(__file__).parents[2] / "reports"
NAMES = ("frameworks", "models", "reference")  # beside which a user's own may lie, as `make report` writes them
SHIPPED = [path for name in NAMES for path in sorted((REPORTS / name).glob("results.jsonl*"))]


def test_the_reports_that_are_shipped_are_known():
    assert [path.parent.name for path in SHIPPED] == list(NAMES)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_every_line_of_a_shipped_report_is_read(path):
    said = []
    records = results.read(path, said.append)
    assert said == []
    assert len(records) > 300


@pytest.mark.parametrize(
    ("schema", "remedy"), [(99, "pip install --upgrade graphduel"), (0, "use the graphduel that wrote it")]
)
def test_a_line_of_another_version_is_refused_with_what_to_do(schema, remedy):
    with pytest.raises(ResultsError, match=f"schema version {schema}, and this graphduel reads version 1; {remedy}"):
        results.of_json({**line(0), "schema": schema})
