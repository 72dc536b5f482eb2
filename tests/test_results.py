"""The results file: what is appended is read back, and what is not ours is told apart."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare import results, schema
from compare.errors import ResultsError
from compare.measure.job import Job

TIME = {"kind": "time", "workload": "tiny", "size": "small", "process": 1, "arms": {}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / results.RESULTS


def test_a_line_says_its_schema_and_comes_back(path):
    results.append(path, TIME)
    results.append(path, {"kind": "failure", "job": {}, "error": "Überlauf\nand more"})
    lines = path.read_bytes().splitlines()
    assert [json.loads(line)["schema"] for line in lines] == [1, 1]
    assert results.read(path)[0] == {"schema": 1, **TIME}
    assert results.read(path)[1]["error"] == "Überlauf\nand more"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), object()])
def test_what_json_cannot_hold_is_refused_and_leaves_the_file_alone(path, bad):
    results.append(path, TIME)
    before = path.read_bytes()
    with pytest.raises((ValueError, TypeError)):
        results.append(path, {**TIME, "arms": {"dynamic": bad}})
    assert path.read_bytes() == before


@pytest.fixture
def full_disk(path):
    """Files of at most a thousand bytes: the next write takes a part, and the one after it fails."""
    resource = pytest.importorskip("resource")
    results.append(path, {**TIME, "more": "x" * 800})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_clear_error_and_leaves_no_part_of_a_line(path, full_disk):
    whole = path.read_bytes()
    with pytest.raises(ResultsError, match=r"results.jsonl: .*; make room, then go on with --resume"):
        results.append(path, {**TIME, "more": "y" * 800})
    assert path.read_bytes() == whole


def test_a_file_is_made_once_and_kept(tmp_path):
    path = tmp_path / "r.jsonl"
    results.create(path)
    assert path.read_bytes() == b""
    results.append(path, TIME)
    results.create(path)
    assert len(results.read(path)) == 1


def test_a_cut_off_last_line_is_ignored_with_a_notice_and_cut_away(path):
    results.append(path, TIME)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    heard = []
    assert len(results.read(path, heard.append)) == 1
    assert str(path) in heard[0]
    assert "cut off" in heard[0]
    assert results.repair(path)
    assert path.read_bytes() == whole
    assert not results.repair(path)


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5), st.data())
def test_a_file_cut_anywhere_keeps_its_complete_lines(tmp_path_factory, texts, data):
    path = tmp_path_factory.mktemp("cut") / "r.jsonl"
    for text in texts:
        results.append(path, {"kind": "note", "text": text})
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    results.repair(path)
    results.append(path, {"kind": "note", "text": "new"})
    assert [r["text"] for r in results.read(path)] == [*texts[:kept], "new"]


@pytest.mark.parametrize(
    "line",
    [
        b"id,seconds",
        b"\xff\xfe\x00",
        b"[1, 2]",
        b"17",
        b'{"schema": 1}',
        b'{"kind": "time"}',
        b'{"schema": 1, "kind": 3}',
        b'{"schema": 1, "kind": "note", "text": NaN}',
        b"[" * 100_000,
    ],
)
def test_a_foreign_line_is_an_error_with_file_line_and_remedy(path, line):
    results.append(path, TIME)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(ResultsError) as caught:
        results.read(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert "--out" in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"arms": 3}, "arms is no container"),
        ({"process": "1"}, "process is no int"),
        ({"process": True}, "process is no int"),
        ({"arms": {"dynamic": []}}, "arms.dynamic is no object"),
        ({"arms": {"dynamic": {"status": "ok"}}}, "arms.dynamic.reason is missing"),
        ({"arms": {"dynamic": {"status": "fast", "reason": None}}}, "arms.dynamic.status is no "),
        ({"arms": {"a": {"status": "ok", "reason": 1}}}, "arms.a.reason is no str"),
        ({"arms": {"a": {"status": "ok", "reason": None, "blocks": [1, 0.5, "x"]}}}, "arms.a.blocks[2] is no float"),
        ({"arms": {"a": {"status": "ok", "reason": None, "stream": [{}]}}}, "arms.a.stream[0].length is missing"),
    ],
)
def test_a_line_that_breaks_the_schema_is_told_where(path, change, problem):
    results.append(path, {**TIME, **change})
    with pytest.raises(ResultsError) as caught:
        results.read(path, strict=True)
    assert f"results.jsonl:1: not a line of graphduel results (time: {problem}" in str(caught.value)
    assert len(results.read(path)) == 1


def test_what_a_refused_arm_leaves_keeps_the_schema():
    refused = {"status": "unsupported", "reason": "it branches on a value"}
    timed = {"status": "ok", "reason": None, "blocks": [1, 0.5], "stream": None, "more": "later"}
    assert schema.violation({**TIME, "arms": {"static-exact": refused, "dynamic": timed}}) is None


def test_another_schema_version_is_named(path):
    path.write_text('{"schema": 2, "kind": "time"}\n')
    with pytest.raises(ResultsError, match=r"results.jsonl:1: schema version 2, .* reads version 1"):
        results.read(path)


def test_kinds_of_later_versions_pass(path):
    results.append(path, {"kind": "energy", "joules": 3})
    assert results.read(path)[0]["joules"] == 3


def test_a_job_and_its_record_have_one_key_and_failures_are_not_done():
    jobs = [Job("time", "tiny", "small", i) for i in range(3)] + [Job("gradients", claim="C2")]
    records = [
        {"kind": "run"},
        {**jobs[0].head, "arms": {}},
        {"kind": "failure", "job": jobs[1].head, "error": "crash"},
        {**jobs[3].head, "checks": 1},
    ]
    done = results.done_jobs(records)
    assert [results.key(job.to_dict()) in done for job in jobs] == [True, False, False, True]


def test_a_json_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / results.VERDICTS
    results.write_json(path, [1])
    with pytest.raises(TypeError):
        results.write_json(path, [object()])
    assert json.loads(path.read_text()) == [1]
    assert [p.name for p in tmp_path.iterdir()] == [results.VERDICTS]
