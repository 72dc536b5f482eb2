"""Results files that somebody has altered, or packed too tightly: an answer or a refusal, and no traceback."""

import gzip
import json

import click
import pytest
from click.testing import CliRunner

from compare.cli import options
from compare.cli.command import graphduel
from compare.errors import ResultsError
from compare.records import results
from compare.records.record import Run
from tests.fuzz.results import fuzz
from tests.helpers.together import together


def call(*words):
    return CliRunner().invoke(graphduel, list(map(str, words)))


@pytest.mark.slow
def test_an_altered_results_file_is_answered_or_refused(tmp_path):
    assert sum(fuzz(60, 0, tmp_path).values()) >= 60


LINES = {
    "no settings": {"schema": 1, "kind": "run", "run": "r", "at": "2030"},
    "an old cell without modes": {"schema": 1, "kind": "framework cell"},
    "an old cell with a number for modes": {
        "schema": 1,
        "kind": "framework cell",
        "arms": 3,
        "cache": None,
        "version": "",
    },
    "an old cell with a number for a mode": {
        "schema": 1,
        "kind": "framework cell",
        "arms": {"eager": 3},
        "cache": "warm",
    },
    "a list": [],
    "no object": 3,
}


@together("name", LINES)
def test_a_line_that_lacks_what_its_kind_has_is_refused(name):
    with pytest.raises(ResultsError, match="not a line of graphduel results"):
        results.parse_line(json.dumps(LINES[name]).encode())


@together(
    "error", [KeyError("whole"), ValueError("blocks"), OverflowError("int"), TypeError("NoneType"), IndexError("0")]
)
def test_records_that_do_not_fit_together_are_refused_with_their_folder_and_the_place(tmp_path, error):
    def judged():
        raise error

    with pytest.raises(ResultsError) as caught, options.reading(tmp_path):
        judged()
    said = f"{tmp_path}: the records do not fit together, {type(error).__name__}: {error} (test_altered_results.py:"
    assert str(caught.value).startswith(said)
    assert caught.value.__cause__ is error


@together(
    "error",
    [ResultsError("of another run"), OSError("full"), KeyboardInterrupt(), click.UsageError("no"), SystemExit()],
)
def test_other_errors_while_results_are_read_are_what_they_were(tmp_path, error):
    with pytest.raises(type(error)) as caught, options.reading(tmp_path):
        raise error
    assert caught.value is error


def test_a_run_whose_settings_were_altered_is_not_resumed(tmp_path):
    record = Run(run="r", at="2030-01-01T00:00:00+00:00", settings={"preset": "quick", "only": 3, "processes": 4})
    results.replace(tmp_path / results.RESULTS, [record])
    done = call("run", "--out", tmp_path, "--resume")
    assert done.exit_code == 2, done.output
    assert f"{tmp_path}: the records do not fit together, TypeError" in done.stderr


def test_a_small_packed_file_never_becomes_a_large_one(tmp_path):
    path = tmp_path / results.PACKED
    with gzip.open(path, "wb", compresslevel=9) as packed:
        for _ in range(24):
            packed.write(b" " * 1_000_000)
    with pytest.raises(ResultsError, match=r"unpack to more than [\d,]+, which no results do; unpack it yourself"):
        results.read(path)
    assert path.stat().st_size < 500_000
