"""What a terminal shows: the progress of a run, tables, effects in words."""

import io

import pytest
from rich.console import Console

from compare import claims, text
from compare.claims import Effect, Finding, Verdict
from compare.report import verdicts
from compare.run import progress
from compare.run.progress import Bar
from compare.stats import Interval
from compare.text import show_table

ESCAPE = "\x1b"


def test_the_bar_shows_what_is_running_and_the_time_left():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress.Bar(console) as bar:
        bar.pace.total = 2
        bar.start("time tiny/small, process 0")
        bar.progress.refresh()
        bar.finish()
        bar.start("time [tiny]/small, process 1")
        bar.finish("it [broke]")
        bar.progress.refresh()
    shown = console.file.getvalue()
    assert "time tiny/small, process 0" in shown
    assert "time [tiny]/small, process 1 failed after" in shown
    assert "it [broke]" in shown
    assert "0/2" in shown
    assert "left" in shown


def test_no_color_takes_the_colors_off_the_bar(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress.Bar(console) as bar:
        bar.start("time")
        bar.progress.refresh()
    assert f"{ESCAPE}[3" not in console.file.getvalue()


def test_a_plain_table_is_aligned_and_keeps_brackets(capsys):
    show_table(("name", "value"), [("a", "[bold]1"), ("longer", "2")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["name    value", "a       [bold]1", "longer  2"]


def test_no_path_is_cut_on_a_narrow_terminal(capsys, monkeypatch):
    path = "/a/long/path/of/folders/" + "x" * 70 + ".cpython-311-x86_64-linux-gnu.so"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(text, "console", lambda: Console(force_terminal=True, width=80, color_system=None))
    show_table(("package", "comes from"), [("dynamic._native", path)])
    shown = capsys.readouterr().out
    assert path in "".join(line[17:].strip() for line in shown.splitlines()[2:])
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("unit", "interval", "verdict", "text"),
    [
        ("ratio", [1.2, 1.3], "supported", "1.23× [1.2, 1.3]"),
        ("share", [0.5, 1], "inconclusive", "79.5% [50%, 100%]"),
        ("s", None, "supported", "1.23 s"),
        ("ratio", None, "inconclusive", "1.23× (no interval)"),
    ],
)
def test_an_effect_in_words(unit, interval, verdict, text):
    value = 0.7951 if unit == "share" else 1.23456
    effect = Effect("static ÷ dynamic", value, unit)
    assert verdicts.effect(Finding(verdict, (), effect, interval and Interval(value, *interval))) == text
    assert verdicts.effect(Finding("not measured yet", ())) == ""


def test_the_table_says_which_ratio_it_shows(capsys):
    effect = Effect("seconds, static ÷ dynamic", 0.5, "ratio")
    verdicts.verdict_table([Verdict(claims.get("C6"), Finding("depends", (), effect, Interval(0.5, 0.25, 1.0)))])
    said = capsys.readouterr().out
    assert "0.5× [0.25, 1]" in said
    assert "seconds, static ÷ dynamic" in said


def test_the_bar_fits_eighty_columns_and_keeps_its_estimate():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    bar = Bar(console)
    bar.pace.total = 536
    for _ in range(73):
        bar.pace.skip()
    for _ in range(50):
        bar.pace.took(8.0)
    bar.label = "lengths encoder_text/sentences, process 11, of a long name that goes on"
    bar.refresh()
    with console.capture() as shown:
        console.print(bar.progress.get_renderable())
    (line,) = shown.get().splitlines()
    assert len(line) <= 80
    assert "123/536" in line
    assert "about 55 min left" in line
    assert "lengths encoder_text" in line


def test_the_bar_says_what_goes_on_and_not_that_it_is_done():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    bar = Bar(console)
    bar.pace.total = 6
    bar.pace.took(100.0)
    bar.refresh()
    bar.step("made call 1 in compile")
    with console.capture() as shown:
        console.print(bar.progress.get_renderable())
    assert "making call 1 in compile" in shown.get()
