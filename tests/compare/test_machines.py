"""The page of several machines: what each of them says of a claim and of a cell, and which runs are refused."""

import json

import pytest
from click.testing import CliRunner
from msgspec import to_builtins

from compare.claims import changes
from compare.claims.changes import MEASURES, JudgedRun
from compare.cli.command import graphduel
from compare.records import results
from compare.report.runs import shared_verdict
from compare.stats import Interval
from tests.helpers.records import plain, typed

WARM = {"A": {"vae": 0.5, "gat": 0.5, "crf": 1.0}, "B": {"vae": 0.6, "gat": 2.0, "crf": 0.7, "gcn": 0.8}}
"""A compiled step divided by an eager one, on two machines."""


def run_of(machine, preset="models", **environment):
    settings = {"preset": preset, "frameworks": ["torch"]}
    where = {"cpu": f"Processor {machine}", "machine": "x86_64", "commit": "c0ffee", "numpy": "2.4.6", **environment}
    return {
        "kind": "run",
        "run": machine,
        "at": "2030-01-02T00:00:00+00:00",
        "settings": settings,
        "environment": where,
    }


def measured(name, ratio):
    """A model in a cold process and three more."""
    modes = ("torch-eager", "torch-compile")
    place = {"workload": name, "size": "model", "arm": modes[1], "eager": modes[0]}
    for process in range(4):
        seconds = {modes[0]: (0.01, 0.02), modes[1]: (0.01 * ratio, 9.0)}
        rows = {
            mode: {"status": "ok", "reason": None, "blocks": [warm] * 3, "first": first}
            for mode, (warm, first) in seconds.items()
        }
        yield {"kind": "time", **place, "process": process, "cache": "warm" if process else "cold", "arms": rows}
    right = {"status": "ok", "reason": None, "output_error": 0.0, "gradient_error": 0.0, "tolerance": 1e-4}
    yield {
        "kind": "parity", **place, "arms": dict.fromkeys(modes, right), "agree": True, "same_graph": None,
        "kernel_calls": {},
    }  # fmt: skip
    bytes = {mode: {"status": "ok", "reason": None, "peak": peak} for mode, peak in zip(modes, (100, 150), strict=True)}
    yield {"kind": "memory", **place, "arms": bytes, "counted": "malloc"}


def records(machine, **header):
    models = [line for name, ratio in WARM[machine].items() for line in measured(name, ratio)]
    return typed([run_of(machine, **header), *models])


def test_a_cell_is_told_for_each_machine_that_measured_it():
    runs = [JudgedRun("one", records("A")), JudgedRun("other", records("B"))]
    warm, _, first, _, peak = (changes.values_by_run(runs, measure, measure.to_base) for measure in MEASURES)
    words = {cell.workload: changes.side_agreement(ratios) for (cell, _), ratios in warm.items()}
    assert words == {"vae": "the same", "gat": "opposite", "crf": "differ", "gcn": "one machine"}
    ratios = {cell.workload: row for (cell, _), row in warm.items()}
    assert [ratio.estimate for ratio in ratios["vae"]] == pytest.approx([0.5, 0.6])
    assert ratios["gcn"][0] is None
    assert next(iter(first.values()))[0].estimate == pytest.approx(450)
    assert [ratio.low == ratio.high == pytest.approx(1.5) for ratio in next(iter(peak.values()))] == [True, True]


SIDES = {"below": Interval(0.5, 0.5, 0.5), "above": Interval(2, 2, 2), "tie": Interval(1, 1, 1), "unclear": Interval(1)}


@pytest.mark.parametrize(
    ("sides", "word"),
    [
        (["below", "below"], "the same"),
        (["below", "above", "unclear"], "opposite"),
        (["below", "unclear"], "open"),
        (["below", "tie"], "differ"),
        (["below"], "one machine"),
        ([], "one machine"),
    ],
)
def test_machines_agree_where_all_lie_on_one_side(sides, word):
    assert changes.side_agreement([*map(SIDES.get, sides), None]) == word


def written(folder, lines):
    folder.mkdir()
    for record in lines:
        results.append(folder / results.RESULTS, record)
    return str(folder)


def report(*arguments):
    return CliRunner().invoke(graphduel, ["report", *arguments])


def test_the_command_writes_one_page_with_a_column_a_machine(tmp_path):
    one, other = written(tmp_path / "one", records("A")), written(tmp_path / "other", records("B", commit="bad"))
    done = report(one, other, "--out", str(tmp_path / "both"))
    assert done.exit_code == 0, done.output
    text = (tmp_path / "both" / "report.md").read_text("utf-8")
    assert "Real models in PyTorch, on" in text
    assert "Of 3 modes of cells that several machines timed once warm: 1 the same, 1 differ, 1 opposite." in text
    assert "| claim | one | other | verdicts |" in text
    assert [line[2:4] for line in text.splitlines() if line.startswith("| C")][:4] == ["C4", "C5", "C6", "C8"]
    assert "| Processor A |" in text
    assert "| Processor B |" in text
    assert "The commit is not the same" in text
    page = (tmp_path / "both" / "report.html").read_text("utf-8")
    assert page.count('class="spark"') == 3 * 4
    assert "divided by the base on each machine" in page


def refused(tmp_path, one, other):
    folders = written(tmp_path / "one", one), written(tmp_path / "other", other)
    done = report(*folders, "--out", str(tmp_path / "both"))
    assert not (tmp_path / "both").exists()
    assert done.exit_code == 2
    return " ".join(done.output.split())


def test_the_same_machine_twice_is_refused(tmp_path):
    said = refused(tmp_path, records("A"), records("A"))
    assert "are of the same machine, Processor A; give a run a machine" in said


def test_two_hosts_alike_are_two_machines():
    several = [records("A"), records("A")]
    for host, lines in zip(("host-1", "host-2"), several, strict=True):
        for record in lines:
            record.host = host
    changes.unlike([JudgedRun(f"run {i}", lines) for i, lines in enumerate(several)])


def test_runs_of_two_suites_are_refused(tmp_path):
    said = refused(tmp_path, records("A"), records("B", preset="quick"))
    assert "measured real models in PyTorch and" in said
    assert "other our workloads, which have no row in common; give runs of one suite" in said


def test_verdicts_of_many_runs_are_medians_by_model_device_and_version(tmp_path):
    verdicts = []
    for number, (machine, factor) in enumerate((("A", 1), ("A", 3), ("B", 1))):
        shared = shared_verdict(records(machine))
        assert not {"/", "\\"} & set(json.dumps(to_builtins(shared)))
        for model in shared.models:
            model.modes["compile"].ratio[0] *= factor
        (tmp_path / f"{number}.json").write_text(json.dumps(to_builtins(shared)))
        verdicts.append(str(tmp_path / f"{number}.json"))
    done = CliRunner().invoke(graphduel, ["report", *verdicts, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Over 3 runs of 4 models and 2 devices, a compiled call takes ")
    page = (tmp_path / "out" / "report.md").read_text("utf-8")
    head, _, *rows = [line.split(" | ") for line in page.splitlines() if line.count("|") == 11]
    assert head[5] == "a call ÷ eager"
    told = {(row[0].strip("| "), row[3]): (row[5], row[6], row[-1].strip("| ")) for row in rows}
    assert told["vae", "Processor A"] == ("1×", "[0.5, 1.5]", "2")
    assert told["gat", "Processor B"] == ("2×", "", "1")
    drawn = (tmp_path / "out" / "plots" / "verdicts.svg").read_text("utf-8")
    assert "÷ eager&#x27;s call (log scale)" in drawn or "÷ eager's call (log scale)" in drawn


def test_a_run_of_workloads_has_no_verdict_for_others_and_a_file_of_another_kind_is_refused(tmp_path):
    assert shared_verdict(records("A", preset="quick")) is None
    (tmp_path / "verdict.json").write_text("{}")
    for paths, why in (([tmp_path / "verdict.json"], "is no verdict.json of a run"),):
        done = CliRunner().invoke(graphduel, ["report", *map(str, paths), "--out", str(tmp_path / "out")])
        assert done.exit_code != 0
        assert why in done.output


def test_records_of_another_schema_are_refused(tmp_path):
    newer = written(tmp_path / "newer", records("B"))
    path = tmp_path / "newer" / results.RESULTS
    lines = [{**json.loads(line), "schema": results.VERSION + 1} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = report(written(tmp_path / "one", records("A")), newer, "--out", str(tmp_path / "both"))
    assert done.exit_code == 2
    assert "newer" in done.output
    assert "pip install --upgrade graphduel" in " ".join(done.output.split())


def test_where_the_page_goes_is_said_for_several_runs_and_for_no_other(tmp_path):
    one, other = written(tmp_path / "one", records("A")), written(tmp_path / "other", records("B"))
    assert "--out FOLDER" in report(one, other).output
    assert "one run's report stands beside its results" in report(one, "--out", str(tmp_path)).output
    assert report().exit_code == 2


def test_records_are_as_a_run_writes_them():
    assert all(plain(record) for record in records("A"))
