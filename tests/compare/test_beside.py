"""Runs beside each other: judged by the same rules, and told where they differ."""

import json

import pytest
from click.testing import CliRunner

from compare.claims import changes
from compare.cli.command import graphduel
from compare.records import results
from compare.report import printers
from compare.report import runs as pages
from tests.helpers.claim_records import memories, prototypes
from tests.helpers.records import typed

QUICK = {"kind": "run", "run": "q", "at": "2030-01-02T00:00:00+00:00", "settings": {"preset": "quick"}}
FULL = {
    **QUICK, "run": "f", "settings": {"preset": "full"},
    "environment": {"cpu": "A processor", "tape": "compiled", "load": 0.5, "logical_cores": 4},
}  # fmt: skip
MORE, LESS, MIXED = memories(1.5, 1.4, 1.6), memories(0.5, 0.6, 0.7), memories(1.5, 0.5, 1.6)


def columns(*runs):
    return [changes.JudgedRun(f"run{i}", typed(records)) for i, records in enumerate(runs)]


@pytest.mark.parametrize(
    ("one", "other", "apart", "word"),
    [
        (MORE, MORE, [], "the same"),
        (MORE, LESS, ["C5"], "differ"),
        (MORE, MIXED, ["C5"], "differ"),
        (MORE, [], [], "open"),
        (MORE, memories(1.5, 1.4), [], "open"),
    ],
)
def test_verdicts_differ_where_two_runs_have_one(one, other, apart, word):
    found = columns([QUICK, *one], [FULL, *other])
    assert changes.differing(found) == apart
    row = next(row for row in pages.verdict_table(found).rows if row[0].startswith("C5"))
    assert row[-1] == word
    assert changes.verdict_sentence(found).startswith(
        "The verdicts on C5 differ" if apart else "No two verdicts differ"
    )


def test_each_run_tells_how_it_was_measured():
    quick, full = columns([QUICK, *MORE], [FULL, *MORE])
    assert quick.measured.startswith("quick run, 2030-01-02T00:00:00+00:00, on an unknown processor. These results do")
    assert full.measured.startswith("full run, 2030-01-02T00:00:00+00:00, on A processor. The tape ran compiled.")
    assert "The load was 0.50 to 0.50 on 4 logical cores" in full.measured
    page = printers.to_markdown(pages.beside([quick, full], None))
    assert "| C5 Dynamic graphs use less memory | ✓ supported 1.5×" in page
    assert full.measured.split(",")[0] in page


def written(folder, records):
    folder.mkdir()
    for record in typed(records):
        results.append(folder / results.RESULTS, record)
    return str(folder)


def test_the_command_shows_them_and_ends_with_1_where_they_differ(tmp_path):
    one, other = written(tmp_path / "one", [QUICK, *MORE]), written(tmp_path / "other", [FULL, *LESS])
    third = written(tmp_path / "third", [FULL, *MORE, *prototypes(4)])
    done = CliRunner().invoke(graphduel, ["diff", one, other, "--out", str(tmp_path / "page.md")])
    assert done.exit_code == 1, done.output
    assert "The verdicts on C5 differ." in done.stdout
    assert (
        (tmp_path / "page.md")
        .read_text("utf-8")
        .startswith("# Runs beside each other\n\nThe verdicts on C5 differ.\n\n## The verdicts\n\n| claim |")
    )
    assert CliRunner().invoke(graphduel, ["diff", one, third]).exit_code == 0
    told = CliRunner().invoke(graphduel, ["diff", one, other, "--json", "-"])
    value = json.loads(told.stdout)
    assert told.exit_code == 1
    assert [run["run"] for run in value["runs"]] == [one, other]
    assert value["runs"][0]["verdicts"]["C5"]["verdict"] != value["runs"][1]["verdicts"]["C5"]["verdict"]
    assert {"sentences", "changes"} < set(value)
    mine = written(tmp_path / "mine", [{**QUICK, "settings": {"preset": "own", "function": "loss"}}])
    own = json.loads(CliRunner().invoke(graphduel, ["diff", mine, mine, "--json", "-"]).stdout)
    assert [run["verdicts"] for run in own["runs"]] == [{}, {}]  # no claim is about a function of the user's
    assert CliRunner().invoke(graphduel, ["diff", one]).exit_code == 2
    (tmp_path / "empty").mkdir()
    assert CliRunner().invoke(graphduel, ["diff", one, str(tmp_path / "empty")]).exit_code == 2
