"""What changed from one run to another: by the processes of each, of like machines, and drift told from change."""

import numpy as np
import pytest
from click.testing import CliRunner

from compare.claims import changes
from compare.cli.command import graphduel
from compare.records import results
from compare.stats import unpaired_ratio_interval
from tests.helpers.claim_records import cell
from tests.helpers.claim_records import memory as cell_memory
from tests.helpers.records import typed

RUN = {"kind": "run", "run": "q", "at": "2030-01-02T00:00:00+00:00", "settings": {"preset": "quick"}}


def start(**environment):
    return {**RUN, "environment": {"cpu": "A", "machine": "x86_64", "numpy": "2.3.0", **environment}}


HERE = start()


def times(start=HERE, **seconds):
    """A run of four processes whose modes take so many seconds, give or take 0.2%."""
    modes = {name.replace("_", "-"): {"seconds": each} for name, each in seconds.items()}
    return [start, *cell("w", modes, processes=4)]


def held(size, start=HERE):
    parity, memory = cell_memory("w", 2 * size, 2 * size)
    for mode in memory["arms"].values():
        mode["held"] = size
    return [start, parity, memory]


def compared(before, after, **options):
    return changes.compare_runs(*(changes.JudgedRun("", typed(run)) for run in (before, after)), **options)


def words(before, after, **options):
    found = compared(before, after, **options)
    return {(one.measure.name, one.mode): one.word for one in found.changes}, " ".join(found.sentences)


def test_a_step_that_takes_a_fifth_longer_is_found_and_a_slower_machine_is_not_one():
    found, _ = words(times(dynamic=1.0, static_exact=0.5), times(dynamic=1.0, static_exact=0.6))
    assert found["a warm step", "static-exact"] == found["a warm step ÷ dynamic", "static-exact"] == "more"
    assert found["a warm step", "dynamic"] == "the same"
    drift, _ = words(times(dynamic=1.0, static_exact=0.5), times(dynamic=1.3, static_exact=0.65))
    assert drift["a warm step", "static-exact"] == drift["a warm step", "dynamic"] == "more"
    assert drift["a warm step ÷ dynamic", "static-exact"] == "the same"
    assert ("a warm step ÷ dynamic", "dynamic") not in drift


def test_the_ratio_is_the_second_run_over_the_first():
    found = compared(times(dynamic=1.0), times(dynamic=0.8)).changes
    assert found[0].ratio.estimate == pytest.approx(0.8, rel=0.01)
    assert found[0].word == "less"
    assert (found[0].before, found[0].after) == (pytest.approx(1.0, rel=0.01), pytest.approx(0.8, rel=0.01))


def test_bytes_are_compared_as_they_were_counted():
    found, said = words(held(1000), held(1100))
    assert found["bytes held", "dynamic"] == found["bytes at the peak", "static-exact"] == "more"
    assert "Bytes held, in 2 rows: 2 more." in said
    assert set(words(held(1000), held(1001))[0].values()) == {"the same"}


def test_times_of_unlike_machines_are_compared_only_when_asked():
    other = times(start(cpu="B", numpy="2.4.0"), dynamic=2.0)
    found, said = words(times(dynamic=1.0), other)
    assert found == {}
    assert "The environments differ: cpu A and B; numpy 2.3.0 and 2.4.0." in said
    assert "their times are not compared" in said
    assert words(times(dynamic=1.0), other, unlike_machines=True)[0]["a warm step", "dynamic"] == "more"
    assert words(held(1000), held(2000, start(cpu="B")))[0]["bytes held", "dynamic"] == "more"


def test_another_numpy_on_one_machine_is_said_and_compared():
    found, said = words(times(dynamic=1.0), times(start(numpy="2.4.0"), dynamic=2.0))
    assert found["a warm step", "dynamic"] == "more"
    assert "numpy 2.3.0 and 2.4.0" in said


def test_two_processes_have_a_ratio_and_no_verdict():
    few = [record for record in times(dynamic=1.0) if record.get("process", 0) < 2]
    (first, *_) = compared(few, times(dynamic=2.0)).changes
    assert first.ratio.estimate == pytest.approx(2.0, rel=0.01)
    assert (first.ratio.bounded, first.word) == (False, "unclear")


def test_intervals_of_two_runs_hold_the_truth_in_95_of_100_or_a_few_more():
    rng = np.random.default_rng(0)

    def run(processes):
        return [list(np.exp(rng.normal(shift, 0.02, 8))) for shift in rng.normal(0, 0.05, processes)]

    ratios = [unpaired_ratio_interval(run(4), run(6)) for _ in range(600)]
    assert 0.93 <= sum(ratio.low <= 1 <= ratio.high for ratio in ratios) / 600 <= 0.98


def test_the_command_shows_what_changed_and_all_of_it_when_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a long path would be cut
    folders = ["before", "after"]
    for name, seconds in zip(folders, (0.5, 0.6), strict=True):
        records = times(dynamic=1.0, static_exact=seconds)
        (tmp_path / name).mkdir()
        for record in typed(records):
            results.append(tmp_path / name / results.RESULTS, record)
    short, whole = (CliRunner().invoke(graphduel, ["diff", *folders, *more]).stdout for more in ([], ["--all"]))
    assert "A warm step, in 2 rows: 1 more, 1 the same." in short
    assert "w (small)  static-exact" in short
    assert "w (small)  dynamic" not in short
    assert "w (small)  dynamic" in whole
    page = tmp_path / "page.md"
    CliRunner().invoke(graphduel, ["diff", *folders, "--out", str(page)])
    assert "## What changed\n\n3 of 5 values changed by more than 5%.\n\nThe env" in page.read_text("utf-8")
    assert short.startswith("3 of 5 values changed by more than 5%.\nThe environments are alike.\n")
    assert short.index("A warm step") < short.index(f"{folders[0]}: ")  # the answer, then how it was measured
    assert "| w (small) | dynamic | a warm step |" in page.read_text("utf-8")


def of_function(name, framework=None, **seconds):
    settings = {"preset": "own", "function": name, "framework": framework}
    return times({**HERE, "settings": settings}, **seconds)


def test_results_of_two_functions_are_said_to_be_that_first():
    def first(*runs):
        return compared(*runs).sentences[0]

    rule = "are two functions: only results of one function can show what changed."
    loss = of_function("loss", dynamic=1.0)
    assert first(loss, of_function("other", dynamic=1.0)) == f"loss and other {rule}"
    assert first(loss, of_function("loss", "torch", dynamic=1.0)) == f"loss and loss in PyTorch {rule}"
    assert first(loss, times(dynamic=1.0)) == f"loss and the workloads {rule}"
    assert first(loss, loss) == "None of 2 values changed by more than 5%."
    assert first(loss, [HERE, *cell("v", {"dynamic": {"seconds": 1.0}})][:1]).startswith("loss and the workloads")
    assert first([HERE], [HERE]) == "Nothing was measured in both."


def test_what_is_unclear_is_counted_in_the_first_sentence():
    few = [record for record in times(dynamic=1.0) if record.get("process", 0) < 2]
    said = compared(few, times(dynamic=2.0)).sentences[0]
    assert said == "None of 2 values changed by more than 5%, and 2 are unclear."


# Baselines


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nimport graphs as g\n\n\ndef f(x):\n    return g.tanh(x)\n\n\ninputs = [(np.ones(3),)]\n"
    )

    def call(*words):
        asked = ["compare", "mine.py:f", "--processes", "0", "--seconds", "0.01", *words]
        return CliRunner().invoke(graphduel, asked)

    return call


@pytest.mark.slow
def test_two_versions_of_a_framework_are_told_with_the_answer_the_compilations_and_the_breaks():
    def run(version, breaks, **seconds):
        first, *lines = of_function("loss", "torch", **seconds)
        settings = {**first["settings"], "version": version, "where": "fresh workers", "gradient": True, "inputs": 1}
        row = {"status": "ok", "reason": None, "made": [{"reason": "first", "seconds": 1.0}] * (1 + breaks)}
        row |= {"breaks": {"f.py:3: item": breaks} if breaks else {}, "share": 1 - breaks / 2}
        place = {"kind": "compilations", "workload": "w", "size": "small", "eager": "dynamic", "version": version}
        return [{**first, "settings": settings}, *lines, {**place, "arms": {"static-exact": row}}]

    old, new = run("2.12.0", 1, dynamic=1.0, static_exact=1.5), run("2.13.0", 0, dynamic=1.0, static_exact=0.5)
    found = compared(old, new).sentences
    assert "PyTorch is 2.13.0 after 2.12.0." in found
    assert (
        "static-exact: 1 compilation instead of 2 compilations; 0 graph breaks instead of 1 graph break; "
        "100% of the ops compiled instead of 50% of the ops compiled."
    ) in found
    (answer,) = (each for each in found if each.startswith("The answer"))
    assert answer.startswith("The answer was: Stay dynamic.")
    assert "Now: " in answer
    assert "The answer is the same." in compared(old, old).sentences


@pytest.mark.slow
def test_a_function_is_compared_with_its_baseline(project, tmp_path):
    first = project("--save-baseline", "main")
    assert first.exit_code in (0, 3), first.output
    assert "Baseline: reports/baselines/main" in first.stdout
    kept = (tmp_path / "reports/baselines/main/results.jsonl").read_bytes()
    second = project("--baseline", "main")
    assert "Changes since the baseline main:" in second.stdout
    assert "The environments are alike." in second.stdout
    assert " values changed by more than 5%" in second.stdout
    assert "Bytes at the peak, in 2 rows: 2 the same." in second.stdout
    assert (tmp_path / "reports/baselines/main/results.jsonl").read_bytes() == kept


@pytest.mark.parametrize("name", ["../out", "", "-x", "a/b", ".hidden"])
def test_a_name_that_leads_elsewhere_is_refused(project, tmp_path, name):
    done = project(f"--save-baseline={name}")
    assert done.exit_code == 2
    assert "is no name; write letters" in " ".join(done.stderr.split())
    assert not (tmp_path / "reports").exists()


def test_a_baseline_that_there_is_not_is_refused_before_anything_is_measured(project, tmp_path):
    assert "there is none: make it by --save-baseline" in " ".join(project("--baseline", "main").stderr.split())
    (tmp_path / "reports/baselines/other").mkdir(parents=True)
    assert "there are other: make it" in " ".join(project("--baseline", "main").stderr.split())
