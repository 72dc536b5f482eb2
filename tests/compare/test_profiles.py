"""A step line by line in the formats of two viewers."""

import json

import pytest
from click.testing import CliRunner

from compare.cli.command import graphduel
from compare.errors import NothingMeasuredError
from compare.records import results
from compare.report import formats as profiles
from tests.helpers.records import typed

LINES = {
    "kind": "lines", "workload": "w", "size": "given",
    "arms": {
        "dynamic": {
            "status": "ok", "reason": None, "step": 10e-6, "elsewhere": 1e-6,
            "lines": {
                "m.py:3": {"seconds": 6e-6, "kernels": 2, "made": 64, "saved": 1, "saved_bytes": 32},
                "m.py:4": {"seconds": 3e-6, "kernels": 1, "made": 8},
            },
        },
        "static-exact": {
            "status": "ok", "reason": None, "step": 3e-6, "elsewhere": 1e-6, "lines": {"m.py:4": {"seconds": 2e-6}}
        },
        "static-pad": {"status": "unsupported", "reason": "no"},
    },
    "code": {"m.py:3": "    h = g.tanh(x @ w)", "m.py:4": "return g.mean(h)"},
}  # fmt: skip


def test_speedscope_has_a_profile_for_each_mode_whose_weights_are_its_lines():
    found = profiles.speedscope(typed([LINES]))
    frames = found["shared"]["frames"]
    assert frames[0] == {"name": "h = g.tanh(x @ w)", "file": "m.py", "line": 3}
    dynamic, static = found["profiles"]
    assert [profile["name"] for profile in (dynamic, static)] == ["dynamic", "static-exact"]
    assert [frames[stack[0]]["name"] for stack in dynamic["samples"]] == [
        "h = g.tanh(x @ w)",
        "return g.mean(h)",
        "elsewhere",
    ]
    assert dynamic["weights"] == [6e-6, 3e-6, 1e-6]
    assert dynamic["endValue"] == pytest.approx(10e-6)
    assert [frames[stack[0]].get("line") for stack in static["samples"]] == [4, None]
    assert {"$schema", "shared", "profiles"} <= found.keys()


def test_perfetto_has_a_thread_for_each_mode_whose_events_follow_each_other():
    events = profiles.perfetto(typed([LINES]))["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {1: "dynamic", 2: "static-exact"}
    first, second, rest = (event for event in events if event["ph"] == "X" and event["tid"] == 1)
    assert (first["ts"], first["dur"], first["name"]) == (0, pytest.approx(6), "h = g.tanh(x @ w)")
    assert second["ts"] == pytest.approx(first["ts"] + first["dur"])
    assert rest["ts"] + rest["dur"] == pytest.approx(10)
    assert first["args"] == {"place": "m.py:3", "kernels": 2, "bytes made": 64, "bytes saved for backward": 32}


def test_one_mode_alone_and_none_at_all():
    assert len(profiles.speedscope(typed([LINES]), "static-exact")["profiles"]) == 1
    with pytest.raises(NothingMeasuredError, match="no step of static-pad was read line by line; `graphduel compare"):
        profiles.perfetto(typed([LINES]), "static-pad")


@pytest.mark.parametrize("kind", ["speedscope", "perfetto"])
def test_the_command_writes_it(kind, tmp_path):
    for record in typed([LINES]):
        results.append(tmp_path / results.RESULTS, record)
    out = tmp_path / "step.json"
    done = CliRunner().invoke(graphduel, ["export", str(tmp_path), "--format", kind, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text("utf-8")) == getattr(profiles, kind)(typed([LINES]))
