"""Modes as words: what is read and refused, what a framework takes, and the name that every table has."""

import json
import math
import sysconfig

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import compare
import graphs as g
from compare import engines
from compare.cli import functions, options
from compare.engines import words
from compare.engines.mode import Mode, Offer
from compare.errors import InputsError, UnknownNameError
from compare.gate.rules import gate
from compare.own import measure
from compare.plans.comparison import ComparisonPlan, plans_of
from compare.records.cells import Memory, MemoryRow, Parity, ParityRow, Time, TimeRow
from compare.records.record import label, records_of
from compare.records.results import of_json, to_json
from compare.run import environment
from compare.subjects.subject import Subject, in_pythons, mode_of, modes_of
from tests.helpers import toy_framework

OURS = engines.find_engine("graphduel")
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in __import__("keyword").kwlist
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(NAMES, st.dictionaries(NAMES, PLAIN, max_size=4))
def test_a_word_is_read_as_it_was_written(compiler, values):
    word = words.text(compiler, values)
    assert words.parse(word) == (compiler, values)
    assert words.text(*words.parse(word)) == word
    assert words.part(f"fast={word}") == ("fast", word)
    assert words.split(f"eager, {word},compile") == ["eager", word, "compile"]
    assert label(f"fast={word}") == "fast"
    assert label(word) == word


@given(st.text(max_size=40))
def test_any_text_is_a_word_or_refused(written):
    try:
        compiler, values = words.parse(written)
    except InputsError:
        return
    assert words.parse(words.text(compiler, values)) == (compiler, values)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("compile(", "cannot be read as a mode; write a compiler and its keywords"),
        ("compile", "is no mode; write a compiler and its keywords, such as compile"),
        ("torch.compile()", "is no mode"),
        ("compile(1)", "every option of compile has its name"),
        ("compile(**{'a': 1})", "every option of compile has its name"),
        ("compile(a=1, a=2)", "a is given twice"),
        ("compile(a=open('x'))", "a is not written out; it may hold numbers"),
        ("compile(a=__import__('os'))", "a is not written out"),
        ("compile(a=1j)", "a is not written out"),
        ("compile(a={1, 2})", "a is not written out"),
        ("compile(a=1e999)", "a is not written out"),
        ("compile(a=[b for b in 'ab'])", "a is not written out"),
        ("compile(a=" + "(" * 300 + ")" * 300 + ")", "cannot be read|not written out"),
    ],
)
def test_what_is_no_word_is_refused(word, said):
    with pytest.raises(InputsError, match=said):
        words.parse(word)


def test_a_comma_within_a_word_does_not_end_it():
    listed = "eager, fast=compile(mode='a,b', options={'x': (1, 2)}),aot_eager,"
    assert words.split(listed) == ["eager", "fast=compile(mode='a,b', options={'x': (1, 2)})", "aot_eager"]
    assert words.split(r"compile(a='it\'s, so'),b") == [r"compile(a='it\'s, so')", "b"]


# What an engine makes of a word


@pytest.fixture
def toy(monkeypatch):
    """The toy framework, whose compiler is `jit()`."""
    adapter = toy_framework.Toy()
    adapter.modes = (Mode("eager"), Mode("jit", "jit()"), Mode("fast", "jit(level=3)"))
    offer = Offer({"jit": ("level", "options", "env")}, {"options": ("deep",)}, {"deeper": "jit(level=9)"})
    monkeypatch.setattr(adapter.words, "offer", lambda: offer)
    return adapter


def test_a_word_is_a_mode_whose_name_holds_all_of_it(toy):
    base, mode = modes_of(toy, "mine=jit(level=4,options={'deep':True})")
    assert (base, mode) == ("toy-eager", "toy-mine=jit(level=4, options={'deep': True})")
    traits = toy.traits(mode)
    assert (traits.name, traits.compiler, traits.options) == ("mine", "jit", {"level": 4, "options": {"deep": True}})
    assert toy.words.written(mode) == "mine=jit(level=4, options={'deep': True})"
    assert mode_of(toy, toy.words.written(mode)) == mode
    assert not traits.suite
    assert not traits.usual


def test_a_word_without_a_name_is_called_as_it_is_written(toy):
    _, mode = modes_of(toy, ["jit(level=4)"])
    assert toy.traits(mode).name == "jit(level=4)"


def test_a_name_that_the_framework_lists_is_a_mode(toy):
    assert mode_of(toy, "deeper") == "toy-deeper=jit(level=9)"
    assert mode_of(toy, "mine=deeper") == "toy-mine=jit(level=9)"
    assert mode_of(toy, "mine=fast") == "toy-mine=jit(level=3)"
    assert modes_of(toy, {"a": "fast", "b": "jit()"}) == ("toy-eager", "toy-a=jit(level=3)", "toy-b=jit()")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("depeer", "Toy has no mode 'depeer'; did you mean 'deeper'.*; `graphduel doctor toy` lists what there is"),
        ("mine=eager", "Toy has no mode 'eager'"),
        ("jit(levle=2)", r"jit\(levle=2\): jit\(\) takes no 'levle'; did you mean 'level'\?; `graphduel doctor toy`"),
        ("jit(options={'dep': 1})", "options has no 'dep'; did you mean 'deep'"),
        ("jit(options=3)", "options is a dict, not 3"),
        ("jit(env={'A': 1})", "env maps names of variables to text"),
        ("compile()", r"Toy has no compiler compile\(\); it has jit\(\)"),
        ("fast=jit()", "fast is a mode of Toy already; choose another name"),
    ],
)
def test_what_a_framework_lacks_is_refused(toy, written, said):
    with pytest.raises(InputsError, match=said):
        modes_of(toy, [written])


def test_two_modes_of_one_name_are_refused(toy):
    with pytest.raises(InputsError, match="two modes are named 'a'; give each a name of its own"):
        modes_of(toy, ["a=jit()", "a=jit(level=1)"])


def test_no_engine_has_a_mode_of_another_ones_compiler():
    assert engines.of_mode("mine=static(shapes='pad')").name == OURS.name
    assert engines.of_mode("torch-mine=compile()").name == "torch"
    with pytest.raises(UnknownNameError, match="no engine has a mode"):
        engines.of_mode("jax-compile()")


def test_built_in_modes_are_words_too():
    for name in engines.names():
        adapter = engines.find_engine(name)
        for mode in adapter.modes:
            if mode.word:
                assert words.text(*words.parse(mode.word)) == mode.word
                made = adapter.words.read(f"again={mode.word}")
                facts = ("traces", "relaxes", "converts", "pads", "keeps", "keeps_each", "infers", "uncounted")
                assert [getattr(made, fact) for fact in facts] == [getattr(mode, fact) for fact in facts], mode


# What is measured by it


def loss(w, x):
    return g.mean(g.tanh(x @ w) ** 2)


def calls():
    rng = np.random.default_rng(0)
    return [tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((8, 4), (3, 8)))]


@pytest.mark.slow
def test_the_name_stands_in_every_table_and_the_word_in_the_settings(tmp_path):
    modes = {"whole": "static(shapes='exact')", "few": "static(shapes='symbolic', limit=2)"}
    result = compare.compare(loss, calls(), modes=modes, processes=0, seconds=0.05)
    assert result.modes == ("dynamic", "whole", "few")
    assert result.records[0].settings["words"] == [
        "whole=static(shapes='exact')",
        "few=static(shapes='symbolic', limit=2)",
    ]
    (parity,) = records_of(result.records, Parity)
    assert {mode: row.status for mode, row in parity.modes.items()} == dict.fromkeys(result.modes, "ok")
    assert all(row.output_error < 1e-5 for row in parity.modes.values())
    assert "few is static(shapes='symbolic', limit=2)" in " ".join(str(result).split())
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["modes"] == ["dynamic", "whole", "few"]
    page = result.save(tmp_path / "out")
    assert "few is static" in page.read_text("utf-8")
    assert all(math.isfinite(ratio.estimate) for ratio in result.verdict.of_base.values())
    assert set(result.verdict.of_base) == {"whole", "few"}


def test_a_mode_that_refuses_is_a_row_with_its_reason():
    result = compare.compare(loss, calls(), modes={"odd": "static(shapes='none')"}, processes=0, seconds=0.05)
    (parity,) = records_of(result.records, Parity)
    assert parity.modes["odd"].status != "ok"
    assert "none" in str(parity.modes["odd"].reason)


def test_the_plan_the_command_and_the_gate_repeat_a_word(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def loss(w):\n    return w.sum()\n", "utf-8")
    (plan,) = plans_of(["graphduel"], f"{file}:loss", "", ["static", "few=static(limit=2)"])
    assert plan.subject.labels == ("dynamic", "static-exact", "few")
    assert plan.subject.given_modes == ("dynamic", "static-exact", "few=static(limit=2)")
    assert ComparisonPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    (rule,) = gate(["few / static > 1.05"], None, None, [plan]).rules
    assert (rule.top, rule.bottom) == ("few", "static-exact")
    again = Subject.of_file(f"{file}:loss", "", "graphduel", plan.subject.given_modes)
    assert again.modes == plan.subject.modes


def test_the_command_line_takes_names_and_words(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(functions, "_measure", lambda plans, *_, **__: seen.extend(plans) or 1 / 0)
    file = tmp_path / "mine.py"
    file.write_text("def loss(w):\n    return w.sum()\n", "utf-8")
    asked = ["--modes", "static,static(limit=2, shapes='pad')", "--mode", "few=static(limit=3)"]
    CliRunner().invoke(functions.compare, [f"{file}:loss", *asked])
    assert seen[0].subject.labels == ("dynamic", "static-exact", "static(limit=2, shapes='pad')", "few")
    assert "few=static(limit=3)" in seen[0].situation.command


def test_variables_of_a_mode_add_to_flags_and_replace_what_is_no_list(toy, monkeypatch, tmp_path):
    ours = {"FLAGS": "--threads=2 plain=1", "LIMIT": "3", "LD_PRELOAD": "/count.so"}
    monkeypatch.setattr(toy, "environment", lambda *_: dict(ours))
    word = "toy-mine=jit(env={'FLAGS': '--fast', 'LIMIT': '4', 'LD_PRELOAD': '/other.so', 'OWN': '1'})"
    assert toy.variables(word, tmp_path) == {
        "FLAGS": "--threads=2 plain=1 --fast", "LIMIT": "4", "LD_PRELOAD": "/count.so /other.so", "OWN": "1",
    }  # fmt: skip
    assert toy.variables("", tmp_path, more={"OWN": "2"}) == {**ours, "OWN": "2"}


def test_flags_of_the_users_environment_count_beside_ours(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    flags = engines.find_engine("jax").environment(tmp_path)["XLA_FLAGS"].split()
    assert flags[0] == "--xla_cpu_enable_fast_math=true"
    assert flags[-1] == "intra_op_parallelism_threads=1"


@pytest.mark.slow
def test_variables_of_a_mode_are_those_of_its_worker(tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "mine.py"
    file.write_text(
        "import os\nimport torch\n\nseen = os.environ.get('GIVEN')\ninputs = [(torch.ones(3, requires_grad=True),)]\n"
        "def step(x):\n    assert seen == 'yes', f'GIVEN is {seen}'\n    return x.sum()\n",
        "utf-8",
    )
    asked = [f"{file}:step", "--inputs", "inputs", "--processes", "1", "--seconds", "0.05", "--threads", "1"]
    for word, missing in (("compile(backend='eager', env={'GIVEN': 'yes'})", ""), ("compile(backend='eager')", "None")):
        done = CliRunner().invoke(functions.compare, [*asked, "--modes", "eager", "--mode", f"mine={word}"])
        assert ("GIVEN is " in str(done.exception)) == bool(missing), done.output


@pytest.mark.slow
def test_variables_of_a_mode_need_a_process_of_their_own(monkeypatch):
    torch = pytest.importorskip("torch")
    with pytest.raises(InputsError, match="frozen: PyTorch reads TORCHINDUCTOR_FREEZING when it is imported"):
        compare.compare(torch.sum, [(torch.ones(2),)], modes={"frozen": "compile(env={'TORCHINDUCTOR_FREEZING': '1'})"})


# Modes in another Python


@pytest.fixture
def interpreter(tmp_path):
    python = tmp_path / "old" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("")
    python.chmod(0o755)
    return python


def test_a_mode_of_another_python_has_it_in_its_word_and_stands_beside_those_that_are_usual(interpreter):
    engine, python = OURS, {"old": str(interpreter)}
    assert in_pythons(engine, [], {}) == []
    assert in_pythons(engine, ["static"], {}) == ["static"]
    usual, old = in_pythons(engine, [], python)
    assert usual == engine.mode_names[1]
    assert old.startswith("old=static(")
    assert f"python={str(interpreter)!r}" in old
    (mine,) = in_pythons(engine, ["old=static(threads=2)"], python)
    assert mine == f"old=static(threads=2, python={str(interpreter)!r})"


def test_an_environment_is_a_folder_or_an_interpreter_and_anything_else_is_refused(interpreter):
    for place in (interpreter, interpreter.parent.parent):
        assert options.interpreters(None, None, [f"old={place}"]) == {"old": str(interpreter)}
    for wrong in ("old", "old=", f"={interpreter}", "old=/nowhere", f"old={interpreter.parent}"):
        with pytest.raises(click.BadParameter, match="names no interpreter; write NAME=ENV"):
            options.interpreters(None, None, [wrong])


def test_a_worker_of_another_python_gets_the_folders_of_the_user_and_no_packages(tmp_path):
    packages = sysconfig.get_paths()["purelib"]
    assert environment.is_users(str(tmp_path))
    assert not environment.is_users(packages)
    assert not environment.is_users("/elsewhere/lib/python3.12/site-packages")


def test_the_base_of_another_python_is_no_base_of_the_run():
    rows = {mode: ParityRow("ok", None, 0.0, 0.0, 1e-4) for mode in ("eager", "old")}
    gate = Parity(workload="w", size="given", agree=True, modes=rows, same_graph=None, kernel_calls={})
    lines = Memory(workload="w", size="given", modes={"eager": MemoryRow("ok", None, peak=1)}, counted="malloc")
    timed = {mode: TimeRow("ok", None, blocks=[1.0]) for mode in rows}
    record = Time("w", "given", timed, process=0, beside=[to_json(gate), to_json(lines)])
    left = measure.without_mode(record, "eager")
    assert [*left.modes] == ["old"]
    (only,) = left.beside
    assert [*of_json(only).modes] == ["old"]
