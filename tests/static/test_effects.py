"""print and breakpoint: what is shown, how often and in which order, in both engines and whatever the passes do."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs.errors import ArtifactError, GraphError
from graphs.ops.effects import Stop
from static.passes import pipeline
from tests.helpers.slow import examples

X = np.array([[1.0, -2.0], [0.5, 4.0]])
BOTH = pytest.mark.parametrize("engine", ["static", "dynamic", "arrays"])


def run(engine, f, *args, **options):
    if engine == "static":
        return static.compile(f, *args, **options)(*args)
    return f(*[dynamic.tensor(a, requires_grad=True) for a in args] if engine == "dynamic" else args)


def lines_of(call):
    """What a call shows."""
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        call()
    return parsed(stream.getvalue())


def shown(capsys):
    """What has been shown since this was asked last."""
    return parsed(capsys.readouterr().err)


def parsed(text):
    """The labels, in order, with the numbers printed under each."""
    text = re.sub(r"\n(?=\s*\[)", " ", text)
    found = [re.fullmatch(r"(.+?): \w+\[[\d,]*\](?: \(.*?\))? (.*)", line) for line in text.splitlines()]
    return [(m[1], [float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", m[2])]) for m in found]


def labels(capsys):
    return [label for label, _ in shown(capsys)]


def noted(x, name):
    g.print(x, name)
    return x


# Printing ---------------------------------------------------------------------------------------------------------


@BOTH
def test_a_value_is_shown_with_its_label_spec_and_line(engine, capsys):
    def f(x):
        return g.print(x * 2, "doubled")

    line = f.__code__.co_firstlineno + 1
    run(engine, f, X)
    assert capsys.readouterr().err == (f"doubled: f64[2,2] (test_effects.py:{line})\n[[ 2., -4.],\n [ 1.,  8.]]\n")
    run(engine, lambda x: g.print(x[0, 0] > 0), X)
    assert capsys.readouterr().err.startswith("value: bool[] (test_effects.py")


@BOTH
def test_what_nobody_reads_and_what_is_equal_is_shown_as_often_as_written(engine, capsys):
    def f(x):
        for _ in range(2):
            g.print(g.sin(x).sum(), "same")
        return x.sum()

    run(engine, f, X)
    assert labels(capsys) == ["same", "same"]


def test_what_python_knows_is_shown_while_the_graph_is_traced(capsys):
    exe = static.compile(lambda x: x + g.print(np.ones(2), "known"), X)
    assert labels(capsys) == ["known"]
    exe(X)
    assert labels(capsys) == []


@BOTH
def test_branches_and_loops_show_what_they_run(engine, capsys):
    def f(x):
        def body(s, row):
            g.print(s, "s")
            s = s + g.print(row.sum(), "row")
            return s, g.cond(s > 0, lambda s: g.print(s, "above") * 2, lambda s: g.print(s, "below"), s)

        total, _ = g.scan(body, g.zeros(()), x)
        g.print(total, "total")
        g.while_loop(lambda n: g.print(n, "test") < 2, lambda n: n + 1, g.asarray(0))
        return g.fori_loop(0, 2, lambda i, s: g.print(s, "step") * 2, total)

    run(engine, f, X)
    assert shown(capsys) == [
        ("s", [0]), ("row", [-1]), ("below", [-1]), ("s", [-1]), ("row", [4.5]), ("above", [3.5]), ("total", [3.5]),
        ("test", [0]), ("test", [1]), ("test", [2]), ("step", [3.5]), ("step", [7]),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["static", "dynamic"])
def test_a_gradient_passes_and_is_shown_when_asked_and_nothing_is_shown_twice(engine, capsys):
    def loss(x):
        def body(s, row):
            s = s + g.print(row * s, "inside", gradient=True).sum()
            return s, s

        return g.scan(body, g.ones(()), g.print(x, "x"))[0]

    def plain(x):
        return g.scan(lambda s, row: (s + (row * s).sum(), s), g.ones(()), x)[0]

    module = {"static": static, "dynamic": dynamic}[engine]
    np.testing.assert_allclose(module.grad(loss)(X), module.grad(plain)(X))
    # s is 1, then 0, whose gradient at the end is 1 and in the step before that 1 + 4.5
    assert shown(capsys) == [
        ("x", [1, -2, 0.5, 4]),
        ("inside", [1, -2]), ("inside", [0, 0]),
        ("gradient of inside", [1, 1]), ("gradient of inside", [5.5, 5.5]),
    ]  # fmt: skip


def test_a_branch_that_a_gradient_computes_again_is_shown_once(capsys):
    def f(x):
        nested = lambda v: g.scan(lambda s, r: (g.print(s, "deep") + r**2, ()), g.zeros(()), v)[0]  # noqa: E731
        return g.cond(x.sum() > 0, lambda v: nested(g.print(v, "v")), lambda v: v.sum(), x)

    np.testing.assert_allclose(static.grad(f)(X[1]), 2 * X[1])
    assert labels(capsys) == ["v", "deep", "deep"]


def test_symbolic_sizes_show_numbers(capsys):
    exe = static.compile(lambda x: g.print(x, "x").sum() + x.shape[0], g.TensorSpec(("B", 2), "float64"))
    for rows in (0, 1, 3):
        exe(np.ones((rows, 2)))
    assert shown(capsys) == [("x", [1.0] * 2 * rows) for rows in (0, 1, 3)]


PASSES = list(dict.fromkeys(pipeline.DEFAULT))
CHANGES = {"sin": g.sin, "double": lambda v: v + v, "sum": lambda v: v - g.sum(v), "matmul": lambda v: v @ v}
KINDS = st.tuples(st.sampled_from([*CHANGES, "print", "loop", "known"]), st.integers(0, 9))


def of_steps(steps):
    """A function that makes a value of an earlier one in each step, or shows it."""

    def f(x):
        values = [x]
        for i, (kind, pick) in enumerate(steps):
            v = values[pick % len(values)]
            if kind == "print":
                g.print(v, f"shown{i}")
            elif kind == "loop":
                v = g.scan(lambda s, r, i=i: (noted(s + r, f"looped{i}") * 0.5, s), v[0], v)[1]
            else:
                v = v + g.print(g.zeros_like(v) + 2, f"known{i}") if kind == "known" else CHANGES[kind](v)
            values.append(v)
        return values[-1]

    return f


@examples(0.5)
@given(st.lists(KINDS, min_size=2, max_size=10), st.lists(st.sampled_from(PASSES), max_size=6))
def test_effects_keep_their_number_and_order_in_every_pass(steps, some):
    """What the dynamic engine shows, whatever is merged, folded, hoisted, batched or fused around it."""
    f, x = of_steps(steps), np.linspace(-1, 1, 16).reshape(4, 4)
    expected = lines_of(lambda: f(dynamic.tensor(x)))
    for passes in (pipeline.REPLAY, pipeline.DEFAULT, some):
        exe = static.compile(f, g.TensorSpec((4, 4), "float64"), passes=passes)
        found = lines_of(lambda exe=exe: exe(x))
        assert [label for label, _ in found] == [label for label, _ in expected]
        for (_, numbers), (_, wanted) in zip(found, expected, strict=True):
            np.testing.assert_allclose(numbers, wanted, rtol=1e-5, atol=1e-6)


# Breakpoints ------------------------------------------------------------------------------------------------------


@BOTH
def test_a_breakpoint_stops_where_its_condition_holds(engine):
    stops: list[Stop] = []

    def f(x):
        def body(s, row):
            return g.breakpoint(s + row.sum(), "s", when=lambda s: s > 0, hook=stops.append), ()

        return g.scan(body, g.zeros(()), x)[0]

    line = f.__code__.co_firstlineno + 2
    assert run(engine, f, X).item() == 3.5
    assert [(s.label, s.line, s.value.item()) for s in stops] == [("s", f"test_effects.py:{line}", 3.5)]


def test_without_a_hook_it_is_pythons_debugger(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_locals["stop"]))
    exe = static.compile(lambda x: g.breakpoint(x, "x") + 1, X)
    exe(X)
    assert [stop.label for stop in seen] == ["x"]
    np.testing.assert_array_equal(seen[0].value, X)


STOPPED = """
import sys

import numpy as np

import dynamic
import graphs as g
import static


def loss(x):
    h = g.breakpoint(x * 2, "h")
    return g.sum(h)


def train():
    step = {"dynamic": dynamic.value_and_grad(loss), "static": static.jit(static.value_and_grad(loss))}[sys.argv[1]]
    print("loss", step(np.ones(3, np.float32))[0].item())


train()
"""


@pytest.mark.parametrize(("engine", "function"), [("dynamic", "loss"), ("static", "train")])
def test_pythons_debugger_opens_in_the_users_frame_and_the_value_is_below_it(engine, function, tmp_path):
    (tmp_path / "model.py").write_text(STOPPED, "utf-8")
    typed = "where\ndown\np 6 * 7\ncontinue\n"
    environment = {**os.environ, "PYTHONBREAKPOINT": ""}
    command = [sys.executable, str(tmp_path / "model.py"), engine]
    ran = subprocess.run(command, input=typed, capture_output=True, text=True, env=environment, timeout=60, check=True)
    told, first, *_ = ran.stdout.splitlines()
    assert told == "h (model.py:12): f32[3] [2. 2. 2.]"
    assert re.fullmatch(rf"> {re.escape(str(tmp_path / 'model.py'))}\(\d+\){function}\(\)", first)
    assert re.search(r"^\(Pdb\) > .*[/\\\\](graphs|static)[/\\\\].*\(\)$", ran.stdout, re.MULTILINE)
    assert ran.stdout.splitlines()[-1].endswith("loss 6.0")


def test_what_a_hook_raises_ends_the_run():
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        static.compile(lambda x: g.breakpoint(x, hook=stop), X)(X)


def test_options_that_are_no_functions_are_refused():
    with pytest.raises(GraphError, match="breakpoint: when and hook are functions"):
        static.compile(lambda x: g.breakpoint(x, when=3), X)


# Saving -----------------------------------------------------------------------------------------------------------


def test_prints_are_saved_and_breakpoints_are_not(tmp_path, capsys):
    exe = static.compile(lambda x: g.scan(lambda s, r: (g.print(s, "s") + r, ()), x[0], x)[0], X)
    exe.save(tmp_path / "graph")
    static.load(tmp_path / "graph")(X)
    assert labels(capsys) == ["s", "s"]
    exe = static.compile(lambda x: g.breakpoint(x, when=np.isnan), X)
    with pytest.raises(
        ArtifactError, match=r"breakpoint holds a Python function, isnan \(test_effects.py.*take it out"
    ):
        exe.save(tmp_path / "graph")
