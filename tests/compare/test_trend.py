"""Many runs over time: each value against the first of its machine, the last against the one before it."""

from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from compare.claims import changes
from compare.claims.changes import JudgedRun
from compare.cli.command import graphduel
from compare.records import results
from compare.report import printers, verdicts
from compare.report import runs as pages
from compare.stats import Interval
from tests.helpers.claim_records import cell
from tests.helpers.records import typed


def run(day, cpu="A", commit=None, **seconds):
    """A run of four processes whose modes take so many seconds, give or take 0.2%."""
    environment = {"cpu": cpu, "machine": "x86_64", "numpy": "2.3.0", "commit": commit or f"c{day}"}
    at = f"2030-01-{day:02}T00:00:00+00:00"
    start = {"kind": "run", "run": f"r{day}", "at": at, "settings": {"preset": "quick"}, "environment": environment}
    modes = {name.replace("_", "-"): {"seconds": each} for name, each in seconds.items()}
    return typed([start, *cell("w", modes, processes=4)])


def of(found, measure, mode="static-exact"):
    (one,) = (one for one in found if (one.measure.name, one.mode) == (measure, mode))
    return one


def ordered(runs):
    return sorted((JudgedRun(name, records) for name, records in runs.items()), key=lambda run: run.began)


def ratios(one, runs):
    return [ratio and pytest.approx(ratio.estimate, rel=0.01) for ratio in one.ratios_to_first(runs)]


def test_each_run_is_divided_by_the_first_and_the_last_compared_with_the_one_before():
    steps = (0.5, 0.5, 0.6)
    runs = ordered({f"r{day}": run(day, dynamic=1.0, static_exact=step) for day, step in enumerate(steps, 1)})
    found = changes.over_time(runs)
    relative = of(found, "a warm step ÷ dynamic")
    assert ratios(relative, runs) == [1.0, 1.0, 1.2]
    last = relative.last_change(runs)
    assert (last.word, last.ratio.estimate) == ("more", pytest.approx(1.2, rel=0.01))
    assert of(found, "a warm step", "dynamic").last_change(runs).word == "the same"
    assert changes.significant(pages.last_changes(runs, found))[0].mode == "static-exact"


def test_a_machine_is_compared_with_itself_only():
    runs = ordered(
        {
            "a1": run(1, dynamic=1.0),
            "b1": run(2, cpu="B", dynamic=3.0),
            "b2": run(3, cpu="B", dynamic=6.0),
            "a2": run(4, dynamic=1.0),
        }
    )
    found = of(changes.over_time(runs), "a warm step", "dynamic")
    assert ratios(found, runs) == [1.0, 1.0, 2.0, 1.0]
    assert found.last_change(runs).word == "the same"  # a2 against a1, not against b2
    lone = ordered({"a1": run(1, dynamic=1.0), "a2": run(2, dynamic=1.0), "b": run(3, cpu="B", dynamic=3.0)})
    assert of(changes.over_time(lone), "a warm step", "dynamic").last_change(lone) is None


def test_what_a_run_lacks_is_a_gap():
    runs = ordered(
        {"1": run(1, dynamic=1.0, static_pad=0.5), "2": run(2, dynamic=1.0), "3": run(3, dynamic=1.0, static_pad=0.7)}
    )
    gap = of(changes.over_time(runs), "a warm step", "static-pad")
    assert ratios(gap, runs) == [1.0, None, 1.4]
    assert gap.last_change(runs).word == "more"  # against the last that has it
    moved = runs[:1] + runs[2:] + runs[1:2]
    assert of(changes.over_time(moved), "a warm step", "static-pad").last_change(moved) is None


def test_one_value_alone_is_no_trend():
    runs = ordered({"1": run(1, dynamic=1.0, static_pad=0.5), "2": run(2, dynamic=1.0)})
    assert {one.mode for one in changes.over_time(runs)} == {"dynamic"}


def test_the_small_picture_has_a_dot_a_run_and_a_scale_of_its_own():
    points = [verdicts.RunPoint("a<b", Interval(1.0)), None, verdicts.RunPoint("c", Interval(2.0, 1.8, 2.2))]
    svg, words = verdicts.draw_runs("w & v", points)
    picture = ET.fromstring(svg)
    dots = picture.findall(".//circle")
    assert [dot.get("class") for dot in dots] == ["open", "no"]
    assert float(dots[1].get("cy")) < float(dots[0].get("cy"))  # more stands higher
    assert float(dots[1].get("cx")) - float(dots[0].get("cx")) > 60  # the run that has it not keeps its place
    assert [title.text for title in picture.findall(".//title")] == ["a<b: 1×", "c: 2×"]
    assert words == "1×, not measured, 2×"
    assert [(label.text, float(label.get("y"))) for label in picture.findall("text")] == [
        ("1/2×", 39.0), ("1×", 24.0), ("2×", 9.0),
    ]  # fmt: skip
    assert "w &amp; v" in svg


def test_the_page_says_what_changed_and_draws_every_row():
    runs = ordered({f"r{day}": run(day, dynamic=1.0, static_exact=step) for day, step in enumerate((0.5, 0.4), 1)})
    found = changes.over_time(runs)
    page = pages.over_time(runs, found)
    shown, plain = printers.to_html(page), printers.to_markdown(page)
    assert shown.count('<svg class="spark"') == len(found)
    changed = len(changes.significant(pages.last_changes(runs, found)))
    assert f"The last run changed {changed} of {len(found)} values by more than 5%" in plain
    assert "| w (small) | static-exact | 0.5× | 0.4× | 0.8×" in plain
    assert "1×, 0.8× |" in plain
    assert "| r2 | 2030-01-02T00:00:00+00:00 | c2 | A | quick |" in plain


def write(folder, records):
    folder.mkdir()
    (folder / results.RESULTS).write_bytes(b"".join(map(results.encode, records)))
    return str(folder)


def test_the_command_writes_a_page_and_shows_what_the_last_run_changed(tmp_path):
    folders = [
        write(tmp_path / "new", run(2, dynamic=1.0, static_exact=0.7)),
        write(tmp_path / "old", run(1, dynamic=1.0, static_exact=0.5)),
    ]
    out = tmp_path / "trend.md"
    ended = CliRunner().invoke(graphduel, ["trend", *folders, "--out", str(out)])
    assert ended.exit_code == 0, ended.output
    assert "1.4× [1." in ended.output
    assert "A warm step ÷ dynamic, in 1 row: 1 more." in ended.output
    assert out.read_text().startswith("# 2 runs over time")
    assert CliRunner().invoke(graphduel, ["trend", *folders, "--out", str(tmp_path / "t.html")]).exit_code == 0
    assert "<svg" in (tmp_path / "t.html").read_text()


def test_the_command_refuses_what_makes_no_trend(tmp_path):
    one = write(tmp_path / "one", run(1, dynamic=1.0))
    other = write(tmp_path / "other", run(2, cpu="B", dynamic=1.0))
    for arguments, said, code in (
        ([one], "give two runs or more", 2),
        ([one, other, "--out", "x.pdf"], "is neither .html nor .md", 2),
        ([one, other], "no two of these runs measured the same on one machine", 2),
        ([one, str(tmp_path)], "holds no results.jsonl", 2),
    ):
        ended = CliRunner().invoke(graphduel, ["trend", *arguments])
        assert (ended.exit_code, said in ended.output) == (code, True), ended.output
