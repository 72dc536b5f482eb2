"""`graphduel compare` and `graphduel plan`: what they print, write and refuse, and how they end."""

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from compare import own
from compare.cli.command import graphduel
from compare.errors import CompareError
from compare.own import run, workers
from compare.own.result import empty
from compare.records import results
from compare.run.start import HOME, PACKAGES
from compare.subjects import origin
from tests.helpers.asked_here import asked_here
from tests.helpers.records import typed

QUICK = ["--processes", "0", "--seconds", "0.01"]
MINE = """
import math
import numpy as np
import graphs as g
from beside import WIDTH

def loss(params, x):
    return g.mean(g.tanh(x @ params) ** 2)

def asks(params, x):
    return g.sum(x) * math.gamma(g.sum(params).item())

def wrong(params, x):
    return g.sum(x @ params["w"])

def unmasked(x):
    return g.sum(g.exp(x))

def moody(x, calls=[]):
    calls.append(1)
    return g.sum(x * len(calls))

def streams():
    return [(np.ones(n, np.float32),) for n in (3, 5)]

def maker():
    def inside(params, x):
        return g.sum(x)
    return inside

inside = maker()
value = 3
inputs = [(np.ones((WIDTH, 2), np.float32), np.ones((4, WIDTH), np.float32))]
"""


@pytest.fixture
def call():
    return lambda *arguments: CliRunner().invoke(graphduel, list(map(str, arguments)))


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder with a file of the user's, looked at in this process, and none of it left there afterwards."""
    asked_here(monkeypatch)
    (tmp_path / "mine.py").write_text(MINE, "utf-8")
    (tmp_path / "beside.py").write_text("WIDTH = 3\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name == "beside" or name.startswith(origin.PREFIX):
            del sys.modules[name]


# compare


def test_compare_prints_the_table_and_the_verdict(call, mine):
    done = call("compare", "mine.py:loss", *QUICK)
    assert done.exit_code in (0, 3), done.output
    assert "\n\nloss: value and gradients over 1 input; 5 ×" in done.stdout
    assert "static-exact" in done.stdout
    assert "Once warm, " in " ".join(done.stdout.split())
    assert "first look mine.py:loss" in done.stderr


def test_the_answer_as_json_is_all_of_stdout(call, mine):
    done = call("compare", "mine.py:loss", *QUICK, "--json", "-")
    value = json.loads(done.stdout)
    assert (value["kind"], value["function"]) == ("comparison", "loss")
    assert value["verdict"]["sentence"][:12] in done.stderr


@pytest.mark.slow
def test_compare_writes_a_report_that_can_be_judged_again(call, mine):
    done = call("compare", "mine.py:loss", *QUICK, "--out", "out dir")
    assert "Report: out dir/report.html" in done.stdout.replace("\\", "/")
    first = json.loads((mine / "out dir" / results.VERDICTS).read_text("utf-8"))
    again = call("report", "out dir")
    assert again.exit_code == 0, again.output
    assert json.loads((mine / "out dir" / results.VERDICTS).read_text("utf-8")) == first
    assert [entry["claim"] for entry in first] == ["F1", "F2", "F3"]
    page = (mine / "out dir" / "report.md").read_text("utf-8")
    assert "    graphduel compare mine.py:loss --modes dynamic,static" in page


def test_a_report_is_written_over_results_alone(mine):
    folder = mine / "out"
    folder.mkdir()
    assert empty(folder, overwrite=True) == folder
    (folder / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(CompareError, match=r"not empty; choose another$"):
        empty(folder, overwrite=True)
    (folder / results.RESULTS).write_text("", "utf-8")
    with pytest.raises(CompareError, match="or give --overwrite"):
        empty(folder)
    assert empty(folder, overwrite=True) == folder


def test_show_of_a_function_names_the_commands_that_take_it(call, mine):
    done = call("show", "mine.py:loss")
    assert "graphduel compare mine.py:loss" in done.stdout
    assert call("show", "none.py:loss").exit_code == 2


@pytest.mark.slow
def test_a_results_file_runs_no_code(call, mine):
    call("compare", "mine.py:loss", *QUICK, "--out", "out")
    (mine / "mine.py").write_text("raise SystemExit('this must not run')", "utf-8")
    del sys.modules[origin.PREFIX + "mine"]
    assert call("report", "out").exit_code == 0
    assert origin.PREFIX + "mine" not in sys.modules


@pytest.mark.slow
@pytest.mark.parametrize("place", ["streams", "mine.py:streams"])
def test_inputs_may_be_named_or_made_by_a_function(call, mine, place):
    done = call("compare", "mine.py:unmasked", "--inputs", place, "--no-gradient", *QUICK)
    assert "\n\nunmasked: value over 2 inputs" in done.stdout


@pytest.mark.slow
def test_workers_import_the_file_too(call, mine):
    done = call("compare", "mine.py:loss", "--processes", 1, "--seconds", 0.01)
    assert done.exit_code in (0, 3), done.output
    assert "1 × fresh workers" in done.stdout
    assert "times of static-exact, process 1:" in done.stderr
    assert "failed" not in done.output


@pytest.mark.parametrize(
    ("function", "options", "code", "told"),
    [
        ("mine.py", [], 2, "write FILE.py:function"),
        ("nowhere.py:f", [], 2, "there is no file nowhere.py"),
        ("mine.py:los", [], 2, "did you mean 'loss'?"),
        ("mine.py:value", [], 2, "is no function but of type int"),
        ("beside.py:print", [], 2, "defines no 'print'"),
        ("mine.py:nofn", [], 2, "choose one of loss, asks, wrong, unmasked, moody, streams, maker, inside\n"),
        ("mine.py:loss", ["--inputs", "mine.py:nothing"], 2, "defines no 'nothing'"),
        ("mine.py:loss", ["--modes", "dynamic,statik"], 2, "did you mean 'static"),
        ("mine.py:loss", ["--processes", "-1"], 2, "--processes"),
        ("mine.py:loss", ["--out", "."], 2, "is not empty"),
        ("mine.py:wrong", [], 1, "(mine.py:14); convert first\n"),
    ],
)
def test_what_cannot_be_compared_has_its_code_and_says_why(call, mine, function, options, code, told):
    done = call("compare", function, *QUICK, *options)
    assert done.exit_code == code, done.output
    assert told in done.stderr
    assert done.stdout == ""


def test_inputs_that_are_missing_are_explained(call, mine):
    (mine / "bare.py").write_text("def f(x):\n    return x\n", "utf-8")
    done = call("compare", "bare.py:f")
    assert done.exit_code == 2
    assert "inputs = [(x,), ...]" in done.stderr
    assert done.stderr.endswith("--inputs NAME\n")


def test_what_a_file_has_that_gives_batches_is_named(call, mine):
    text = "import collections\nimport numpy as np\nx = np.ones(3)\nlosses = []\nseen = collections.Counter()\n"
    loader = "class Loader(collections.UserList):\n    pass\ntrain = Loader([(x,)])\ndef f(x):\n    return x\n"
    (mine / "bare.py").write_text(text + loader, "utf-8")
    done = call("compare", "bare.py:f")
    assert done.exit_code == 2
    assert "--inputs NAME, as --inputs train, which is of type Loader" in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("import sys\nsys.exit(0)", 2, '`if __name__ == "__main__":`'),
        ("x = 1 / 0", 1, "broken.py:1: ZeroDivisionError"),
        ("def f(:", 1, "SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_imported(call, mine, text, code, told):
    (mine / "broken.py").write_text(text, "utf-8")
    done = call("compare", "broken.py:f")
    assert done.exit_code == code
    assert told in done.stderr
    assert origin.PREFIX + "broken" not in sys.modules


@pytest.mark.parametrize(
    ("function", "options", "code", "told"),
    [
        pytest.param("asks", [], 5, "ControlFlowError", marks=pytest.mark.slow),
        ("unmasked", ["--inputs", "mine.py:streams", "--modes", "dynamic,static-pad"], 4, "bool mask"),
        pytest.param("asks", ["--modes", "static"], 5, "Only dynamic was measured", marks=pytest.mark.slow),
    ],
)
def test_compare_ends_with_what_the_gate_found(call, mine, function, options, code, told):
    done = call("compare", f"mine.py:{function}", *QUICK, *options)
    assert done.exit_code == code, done.output
    assert told in " ".join(done.stdout.split())


def test_compare_refuses_what_gives_another_result_each_time(call, mine):
    done = call("compare", "mine.py:moody", *QUICK, "--inputs", "mine.py:streams", "--allow-effects")
    assert done.exit_code == 1
    assert "moody is not deterministic" in done.stderr


def test_times_that_cannot_be_told_apart_end_with_3():
    fine = {"status": "ok", "reason": None, "output_error": 0.0, "gradient_error": 0.0, "tolerance": 1e-4}
    rows = dict.fromkeys(("dynamic", "static-exact"), fine)
    parity = {"kind": "parity", "workload": "f", "size": "given", "agree": True, "arms": rows}
    parity |= {"same_graph": True, "kernel_calls": {}}
    times = [
        {"kind": "time", "workload": "f", "size": "given", "process": i, "arms": {
            mode: {"status": "ok", "reason": None, "build": 0.0, "first": 1.0, "blocks": blocks, "compiles": 0}
            for mode, blocks in (("dynamic", [1.0, 2.0]), ("static-exact", [2.0, 1.0]))
        }}
        for i in range(2)
    ]  # fmt: skip
    assert own.Result("f", tuple(rows), tuple(typed([parity, *times]))).exit_code == 3


def test_ctrl_c_and_sigterm_end_a_comparison_and_leave_nothing(call, mine, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in a background job it is ignored
    try:
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            monkeypatch.setattr(run, "_run_jobs", lambda *_, number=number: signal.raise_signal(number))
            done = call("compare", "mine.py:loss", *QUICK)
            assert done.exit_code == code
            assert "nothing was written" in done.stderr
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_ctrl_c_in_an_import_is_no_error_of_a_file(call, mine, monkeypatch):
    def importing(*_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.multiarray failed to import") from None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(run, "run_plan", importing)
        done = call("compare", "mine.py:loss", *QUICK)
        assert (done.exit_code, done.stderr.strip()) == (130, "Stopped.")
    finally:
        signal.signal(signal.SIGINT, before)


def test_any_command_ends_on_sigterm_as_on_ctrl_c(call, mine, monkeypatch):
    monkeypatch.setattr(workers, "answer", lambda *_: signal.raise_signal(signal.SIGTERM))
    done = call("plan", "mine.py:loss")
    assert (done.exit_code, done.stdout) == (143, "")
    assert done.stderr.strip() == "Stopped."


@pytest.mark.slow
def test_a_file_named_as_a_package_of_ours_is_still_the_users(call, mine):
    (mine / "static.py").write_text(MINE, "utf-8")
    done = call("compare", "static.py:loss", *QUICK)
    assert done.exit_code in (0, 3), done.output


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_files_beside_the_users_that_are_named_as_packages_of_ours_hide_nothing(call, mine, processes):
    for name in ("graphs", "compare", "dynamic", "static"):
        (mine / f"{name}.py").write_text(f"raise RuntimeError('the {name} beside mine.py')", "utf-8")
    done = call("compare", "mine.py:loss", "--processes", processes, "--seconds", 0.01)
    assert done.exit_code in (0, 3), done.output
    assert "failed" not in done.output
    assert "graphs.py has the name of a package of graphduel, so `import` does not find it; rename it" in done.stderr
    assert done.stderr.count("has the name of a package") == 4


def test_in_a_checkout_of_ours_nothing_is_said_to_hide(mine):
    for name in PACKAGES:
        (mine / name).mkdir()
        shutil.copy(Path(HOME, name, "__init__.py"), mine / name)
    assert origin.hidden_packages(mine / "mine.py") == []
    (mine / "static" / "__init__.py").write_text("mine = 1", "utf-8")
    assert origin.hidden_packages(mine / "mine.py") == ["static"]


# plan


def test_plan_shows_where_the_values_of_a_function_lie(call, mine):
    done = call("plan", "mine.py:loss", "--out", "map.svg")
    assert done.exit_code == 0, done.output
    head, *rows, last = [line for line in done.stdout.splitlines() if line and not line.startswith("Map: ")]
    assert head.split() == ["offset", "size", "steps", "holds"]
    assert "mine.py:" in "".join(rows)
    assert last.startswith("peak ")
    assert ", lower bound " in last
    assert (mine / "map.svg").read_text("utf-8").startswith("<svg")
    refused = call("plan", "mine.py:loss", "--out", "map.pdf")
    assert (refused.exit_code, "use .svg or .html" in refused.output) == (2, True)
    assert call("plan", "mine.py:los").exit_code == 2


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "-1", "x"])
def test_a_number_of_seconds_is_one(call, mine, seconds):
    done = call("compare", "mine.py:loss", f"--seconds={seconds}")
    assert done.exit_code == 2
    assert "'--seconds'" in done.stderr
    assert done.stdout == ""
