"""The command: exit codes, messages and what is printed where."""

import errno
import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from compare import claims, report, workloads
from compare import text as terminal
from compare.cli.command import SHOWN, graphduel
from compare.records import results
from compare.suite import stages as runs
from dynamic import tapes
from graphs.errors import plain
from tests.helpers.fake_run import Machine, Waiting, parity_with, raw
from tests.helpers.records import lines

ESCAPE = "\x1b"


@pytest.fixture
def call():
    return lambda *arguments: CliRunner().invoke(graphduel, list(map(str, arguments)))


@pytest.fixture
def machine(monkeypatch):
    """Runs answered by a machine that measures nothing, over two fake workloads."""
    sources = {"tiny": "tests.helpers.fake_workloads:TINY", "stray": "tests.helpers.fake_workloads:STREAM"}
    monkeypatch.setattr(workloads, "_sources", sources)
    monkeypatch.setattr(report, "write", lambda *_: [])
    made = Machine()
    monkeypatch.setattr(runs, "run_job", made)
    monkeypatch.setattr(runs, "WaitingWorkers", lambda: Waiting(made))
    return made


# Help and looking


def test_help_is_quick_it_loads_nothing_heavy():
    probe = "import sys, compare.cli; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert not {"numpy", "rich", "matplotlib", "optree", "networkx", "psutil"} & set(done.stdout.split())


def test_help_has_a_whole_sentence_for_each_command_in_eighty_columns():
    shown = CliRunner().invoke(graphduel, ["--help"], terminal_width=80).output.partition("Commands:\n")[2]
    assert [line.split()[0] for line in shown.splitlines()] == list(SHOWN)
    others = CliRunner().invoke(graphduel, ["lab", "--help"], terminal_width=80).output.partition("Commands:\n")[2]
    assert [line.split()[0] for line in others.splitlines()] == sorted(set(graphduel.commands) - set(SHOWN))
    for line in (*shown.splitlines(), *others.splitlines()):
        assert line.endswith(".")
        assert not line.endswith("...")


def test_a_command_of_the_lab_works_by_its_name_alone_too():
    alone, under = (CliRunner().invoke(graphduel, [*prefix, "list"]) for prefix in ((), ("lab",)))
    assert (alone.exit_code, under.exit_code) == (0, 0)
    assert alone.output == under.output


@pytest.mark.parametrize("module", ["compare", "compare.cli"])
def test_the_command_is_the_module(module):
    if module == "compare.cli":
        command = [sys.executable, "-c", "from compare.cli import main; main()", "--help"]
    else:
        command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: graphduel [OPTIONS] COMMAND")
    for name in ("run", "report", "compare", "doctor", "lab"):
        assert f"\n  {name} " in done.stdout


def test_the_help_of_compare_lists_each_option_in_one_section(call):
    command = graphduel.commands["compare"]
    listed = [name for names in command.sections.values() for name in names]
    options = {param.name for param in command.params if isinstance(param, click.Option)}
    assert sorted(listed) == sorted(options)
    done = call("compare", "--help")
    titles = [*command.sections, "Other options"]
    assert [line[:-1] for line in done.stdout.splitlines() if line.endswith(":") and line[:-1] in titles] == titles
    others = done.stdout.partition("\nOther options:\n")[2].split()
    assert others[:2] == ["-h,", "--help"]  # and no row of the argument, which click lists as well


def test_list_names_every_workload_and_claim(call):
    done = call("list")
    assert done.exit_code == 0
    assert all(name in done.stdout for name in (*workloads.names(), *claims.CLAIMS))
    assert ESCAPE not in done.stdout


@pytest.mark.parametrize("name", ["C4", "c4"])
def test_show_a_claim_with_its_opposite_and_rule(call, name):
    done = call("show", name)
    text = " ".join(done.stdout.split())
    claim = claims.CLAIMS["C4"]
    assert done.exit_code == 0
    assert all(part in text for part in (claim.statement, claim.opposite, claim.rule, *map(str, claim.literature)))


def test_show_a_workload(call):
    done = call("show", "rnn_text")
    assert done.exit_code == 0
    assert "static-bucket" in done.stdout


def test_show_a_claim_about_a_function_of_the_users(call):
    done = call("show", "f1")
    assert done.exit_code == 0
    assert done.stdout.startswith("F1 ")


def test_a_short_name_that_is_none_is_not_taken_for_another(call):
    done = call("show", "Z9")
    assert done.exit_code == 2
    assert "choose one of" in done.stderr


@pytest.mark.parametrize(("name", "meant"), [("tiny_mpl", "tiny_mlp"), ("C44", "C4"), ("rnn", "rnn_text")])
def test_an_unknown_name_suggests_the_nearest(call, name, meant):
    done = call("show", name)
    assert done.exit_code == 2
    assert f"did you mean '{meant}'?" in done.stderr


@pytest.mark.slow
def test_doctor_finds_everything_here(call):
    done = call("doctor")
    assert done.exit_code == 0, done.output
    assert "worker process" in done.stdout


def test_doctor_names_a_broken_part(call, monkeypatch):
    from compare.cli import checks

    monkeypatch.setattr(checks, "PARTS", ("graphs", "no_such_part"))
    monkeypatch.setattr(checks, "_worker", lambda: (checks.FINE, {"governor": None}))
    done = call("doctor")
    assert done.exit_code == 1
    assert "ModuleNotFoundError" in done.stdout


# Running


def test_a_run_prints_the_report_and_one_table(call, machine, tmp_path):
    done = call("run", "--out", tmp_path / "r", "--processes", 1)
    assert done.exit_code == 0, done.output
    assert f"Report: {tmp_path / 'r' / 'report.html'}" in done.stdout
    lines = done.stdout.splitlines()
    starts = [line[:2] for line in lines if line.startswith("C") and line[1].isdigit()]
    assert starts == list(claims.CLAIMS)
    assert ESCAPE not in done.output


def test_a_run_of_some_cells_prints_their_ratios(call, machine, tmp_path):
    some = call("run", "--out", tmp_path / "r", "--processes", 3, "--only", "tiny").stdout
    row = next(line for line in some.splitlines() if line.startswith("tiny (small)"))
    assert "static-exact" in row
    assert "×" in row
    lines = some.splitlines()
    assert lines[0].startswith("Conditions: ")
    assert lines.index(row) == 3  # a blank line, and the names of the columns
    assert "Too little was measured for 8 of 8 claims." in lines
    assert not [line for line in lines if line.startswith("C") and line[1].isdigit()]
    assert call("report", tmp_path / "r").stdout.count("tiny (small)") == some.count("tiny (small)")
    assert "tiny (small)" not in call("run", "--out", tmp_path / "all", "--processes", 3).stdout


def test_progress_is_plain_lines_on_stderr_when_it_is_no_terminal(call, machine, tmp_path):
    done = call("run", "--out", tmp_path / "r", "--processes", 3, "--only", "tiny")
    lines = done.stderr.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("[1/5] parity tiny/small: ")
    assert lines[4].endswith(" s, about 0 s left")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "--only", "tinny"], 2, "did you mean 'tiny'?"),
        (["run", "--only", "zzz*"], 2, "matches no cell"),
        (["run", "--resume"], 2, "--resume needs --out"),
        (["run", "--processes", "0"], 2, "--processes"),
        (["run", "--seed", "-1"], 2, "--seed"),
        (["check", "--only", "tinny"], 2, "matches no cell"),
        (["report", "nowhere"], 2, "does not exist"),
        (["dance"], 2, "No such command"),
    ],
)
def test_what_cannot_be_done_has_its_code_and_says_why(call, machine, arguments, code, message):
    done = call(*arguments)
    assert done.exit_code == code
    assert message in done.stderr
    assert done.stdout == ""


def test_an_existing_run_is_not_overwritten(call, machine, tmp_path):
    assert call("run", "--out", tmp_path, "--only", "tiny").exit_code == 0
    again = call("run", "--out", tmp_path, "--only", "tiny")
    assert again.exit_code == 2
    assert "--resume" in again.stderr
    assert call("run", "--out", tmp_path, "--only", "tiny", "--resume").exit_code == 0


def test_resume_goes_on_with_the_settings_of_the_run(call, machine, tmp_path):
    out = tmp_path / "r"
    machine.say["time"] = KeyboardInterrupt
    assert call("run", "--out", out, "--only", "tiny", "--processes", 5, "--seed", 3).exit_code == 130
    del machine.say["time"]
    machine.jobs.clear()
    assert call("run", "--out", out, "--resume").exit_code == 0
    assert {job.workload for job in machine.jobs} == {"tiny"}
    assert {(job.process, job.seed) for job in machine.jobs if job.kind == "time"} == {(i, 3) for i in range(5)}
    first, *rest = [r["settings"] for r in lines(out / results.RESULTS) if r["kind"] == "run"]
    assert rest == [first]


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--only", "stray"], "has only tiny, and stray was asked for"),
        (["--processes", "4"], "has processes 3, and 4 was asked for"),
        (["--seed", "1"], "has seed 0, and 1 was asked for"),
        (["--full"], "has preset quick, and full was asked for"),
        (["--python-tape"], "has python_tape False, and True was asked for"),
    ],
)
def test_resume_refuses_options_that_contradict_the_run(call, machine, tmp_path, option, told):
    first = ["run", "--out", tmp_path / "r", "--only", "tiny", "--processes", 3]
    assert call(*first).exit_code == 0
    before = (tmp_path / "r" / results.RESULTS).read_bytes()
    done = call("run", "--out", tmp_path / "r", "--resume", *option)
    assert done.exit_code == 2
    assert f"{told}; leave that option out" in " ".join(done.stderr.split())
    assert (tmp_path / "r" / results.RESULTS).read_bytes() == before
    assert call(*first, "--resume", "--quick", "--seed", 0).exit_code == 0  # the same said again is fine


def test_a_folder_that_cannot_be_made(call, machine, tmp_path):
    (tmp_path / "file").write_text("")
    done = call("run", "--out", tmp_path / "file" / "run")
    assert done.exit_code == 2
    assert "cannot write" in done.stderr


def test_ctrl_c_tells_how_to_go_on(call, machine, tmp_path):
    machine.say["time"] = KeyboardInterrupt
    out = tmp_path / "a run"
    done = call("run", "--full", "--out", out, "--only", "t*", "--seed", 3)
    assert done.exit_code == 130
    again = done.stderr.splitlines()[-1].strip()
    assert again == f"graphduel run --full --only 't*' --out '{out}' --resume --processes 6 --seed 3"


@pytest.mark.parametrize(("status", "code"), [("disagree", 4), ("failed", 1), ("unsupported", 0)])
def test_run_and_check_end_with_what_the_gate_found(call, machine, tmp_path, status, code):
    machine.say["parity_tiny"] = parity_with("static-exact", status)
    ran = call("run", "--out", tmp_path)
    checked = call("check")
    assert (ran.exit_code, checked.exit_code) == (code, code)
    assert status in checked.stdout
    if code:
        assert "tiny/small, static-exact: because" in ran.stderr


def test_check_measures_and_writes_nothing(call, machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("check").exit_code == 0
    assert {job.kind for job in machine.jobs} == {"parity"}
    assert list(tmp_path.iterdir()) == []


def test_check_fails_on_graphs_that_differ(call, machine):
    good = parity_with("static-exact", "unsupported")
    machine.say["parity"] = lambda job: {**good(job), "same_graph": False}
    done = call("check")
    assert done.exit_code == 1
    assert "no isomorphic graphs: tiny/small" in done.stderr


def test_report_judges_again(call, machine, tmp_path):
    call("run", "--out", tmp_path, "--only", "tiny")
    (tmp_path / results.VERDICTS).unlink()
    done = call("report", tmp_path)
    assert done.exit_code == 0
    assert len(json.loads((tmp_path / results.VERDICTS).read_text())) == 8


def in_python(job):
    return {**raw(job), "environment": {"tape": "python"}}


@pytest.mark.parametrize(
    ("compiled", "asked", "said"),
    [
        (True, [], None),
        (False, [], "C5, C6 and C7 will be measured and not settled"),
        (False, ["--python-tape"], "judges by this tape"),
    ],
)
def test_a_tape_in_python_is_told_before_anything_is_measured(
    call, machine, tmp_path, monkeypatch, compiled, asked, said
):
    monkeypatch.setattr(tapes, "is_compiled", lambda: compiled)
    first, *_ = call("run", "--out", tmp_path, "--only", "tiny", *asked).stderr.splitlines()
    if said is None:
        assert "tape" not in first
    else:
        assert first.startswith(("The compiled tape is missing", "The tape runs in Python"))
        assert said in first


def test_the_tape_is_told_first_and_one_in_python_is_judged_only_if_asked_for(call, machine, tmp_path):
    machine.say = dict.fromkeys(("parity", "time", "memory"), in_python)
    first = call("run", "--out", tmp_path / "one", "--only", "tiny")
    told = first.stdout.splitlines()[0]
    assert told.startswith("Conditions: ")
    assert told.endswith(". The tape ran in Python: ratios to the compiled tape would differ.")
    reasons = {v["claim"]: v["reasons"][0] for v in json.loads((tmp_path / "one" / results.VERDICTS).read_text())}
    assert reasons["C6"].startswith("the compiled tape is missing: the tape ran in Python")
    assert call("report", tmp_path / "one", "--python-tape").exit_code == 0
    asked = {v["claim"]: v["reasons"][0] for v in json.loads((tmp_path / "one" / results.VERDICTS).read_text())}
    assert asked["C6"].startswith("both engines were measured on fewer than 3 workloads")
    call("run", "--out", tmp_path / "two", "--only", "tiny", "--python-tape")
    call("report", tmp_path / "two")  # what the run was asked for is asked of its report as well
    kept = {v["claim"]: v["reasons"][0] for v in json.loads((tmp_path / "two" / results.VERDICTS).read_text())}
    assert kept == asked


def test_report_of_what_is_no_run(call, tmp_path):
    empty = call("report", tmp_path)
    assert empty.exit_code == 2
    assert "graphduel run" in empty.stderr
    (tmp_path / results.RESULTS).write_text("hello\n")
    foreign = call("report", tmp_path)
    assert foreign.exit_code == 2
    assert "results.jsonl:1: not a line of graphduel results" in foreign.stderr


# What others have put into a file


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\ud800 name"


@pytest.mark.parametrize("field", ["kind", "workload", "error", "cpu"])
def test_nothing_in_a_results_file_moves_the_cursor(call, machine, tmp_path, field):
    assert call("run", "--out", tmp_path, "--only", "tiny").exit_code == 0
    failed = {"schema": 1, "kind": "failure", "job": {"kind": "time", "workload": "tiny"}, "error": "died"}
    environment = {"cpu": HOSTILE if field == "cpu" else "one"}
    path = tmp_path / results.RESULTS
    start = json.loads(path.read_text().splitlines()[0]) | {"environment": environment}
    if field == "kind":
        failed |= {"kind": HOSTILE, "schema": 2}
    elif field == "workload":
        failed["job"]["workload"] = HOSTILE
    elif field == "error":
        failed["error"] = HOSTILE
    with path.open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in (start, failed)))
    for done in (call("run", "--out", tmp_path, "--resume"), call("report", tmp_path)):
        assert not set(done.output) & set("\x1b\x07\x9b\u202e")
        done.output.encode()
    for page in tmp_path.glob("report.*"):  # there is none where the file is refused
        text = page.read_text("utf-8")
        assert text == plain(text)
    if field != "kind":
        assert "\\x1b]0;owned\\x07" in call("run", "--out", tmp_path, "--resume").stderr or field == "cpu"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ((errno.EACCES, "Permission denied", "a.py"), "a.py: Permission denied"),
        ((errno.EAGAIN, "Resource temporarily unavailable"), "Resource temporarily unavailable"),
        (
            (errno.ENOENT, "No usable folder in []"),
            "No usable folder in []; let TMPDIR be a folder that can be written to",
        ),
        (("the words of a library",), "the words of a library"),
    ],
)
def test_what_the_system_refuses_is_said_in_one_line(call, monkeypatch, error, said):
    def refused(**_):
        raise OSError(*error)

    monkeypatch.setattr(graphduel.commands["doctor"], "callback", refused)
    done = call("doctor")
    assert (done.exit_code, done.output) == (2, f"Error: {said}\n")


def test_an_error_breaks_between_words_on_a_terminal_alone(monkeypatch):
    words = "matmul: " + "inner dimensions differ; " * 6 + "x" * 100
    assert terminal.wrap(words) == words
    monkeypatch.setattr(terminal.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    lines = terminal.wrap(words + "\nnext").split("\n")
    assert " ".join(lines) == words + " next"
    assert [len(line) <= 40 for line in lines[-4:]] == [True, True, False, True]


@pytest.mark.slow
@given(st.text())
def test_plain_text_is_what_it_was_but_for_what_a_terminal_obeys(text):
    shown = plain(text)
    assert "\x1b" not in shown
    shown.encode()
    assert shown == text or any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


# how deep Python's reader goes depends on its version: 3.11 gives up before 5,000, 3.13 does not
@pytest.mark.parametrize(("depth", "code"), [(66, 0), (500, 0), (100_000, 2)])
def test_deeply_nested_json_is_left_alone_or_no_line_of_ours(call, machine, tmp_path, depth, code):
    assert call("run", "--out", tmp_path, "--only", "tiny").exit_code == 0
    nested = "[" * depth + "]" * depth
    path = tmp_path / results.RESULTS
    path.write_text(path.read_text() + f'{{"schema":1,"kind":"other","deep":{nested}}}\n')
    said = (
        "results.jsonl:8: not a line of graphduel results" if code else "1 lines of kinds that this graphduel does not"
    )
    for command in (["report"], ["export"], ["run", "--resume", "--out"]):
        done = call(*command, tmp_path)
        assert done.exit_code == code, done.output
        assert said in done.stderr


@pytest.mark.parametrize("what", ["verdicts", "report"])
def test_a_disk_that_is_full_at_the_end_keeps_the_records_and_says_what_to_do(
    call, machine, tmp_path, monkeypatch, what
):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*((results, "write_json", full) if what == "verdicts" else (report, "write", full)))
    done = call("run", "--out", tmp_path / "a run", "--only", "tiny")
    assert done.exit_code == 2
    assert "were not written: No space left on device; every record is kept, so make room, then" in done.stderr
    assert f"graphduel report '{tmp_path / 'a run'}'" in done.stderr
    assert [r["kind"] for r in lines(tmp_path / "a run" / results.RESULTS)].count("memory") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_file_that_cannot_be_written_is_named(call):
    done = call("schema", "--out", "/dev/full")
    assert (done.exit_code, done.stderr) == (2, "Error: /dev/full: No space left on device\n")
