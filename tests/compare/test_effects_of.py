"""What a user's function does besides its result: found before timing, with the line, and refused unless allowed."""

import importlib
import random
import socket
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import compare
import graphs as g
from compare import engines
from compare.cli.command import graphduel
from compare.errors import EffectsError
from compare.subjects import effects
from compare.subjects.effects import SideEffect, fingerprint
from tests.helpers import own_functions as own
from tests.helpers.together import together

X = np.ones(3, np.float32)
QUICK = {"processes": 0, "seconds": 0.01}
TARGET = Path()
COUNT, LOG, STATE = 0, [], {"n": np.zeros(2)}
GENERATOR = np.random.default_rng(0)
PYTHON = random.Random(0)


class Holder:
    n = 0

    def __init__(self):
        self.seen = []


HOLDER = Holder()


def effects_of(f, example):
    return effects.effects_of(f, example, engines.find_engine(engines.OWN))


def here(f, text):
    """The line of a function in this file on which a text stands, as messages name it."""
    code = f.__code__
    lines = Path(__file__).read_text("utf-8").splitlines()
    (found,) = [n for n in range(code.co_firstlineno, len(lines)) if text in lines[n - 1]][:1]
    return f"{__name__.rpartition('.')[2]}.py:{found}"


def prints(x):
    y = x * 2
    print("loss", y)
    return g.sum(y)


def draws(x):
    noise = random.random()
    return g.sum(x) * noise


def draws_numpy(x):
    noise = np.random.rand(3)  # noqa: NPY002  (what users still write)
    return g.sum(x * noise)


def by_helper(x):
    return g.sum(x) + helper()


def helper():
    LOG.append(2)
    return 0


def default(x, calls=[]):  # noqa: B006  (the subject)
    calls.append(1)
    return g.sum(x)


def attribute(x):
    attribute.calls = getattr(attribute, "calls", 0) + 1
    return g.sum(x)


def argument(x):
    x[0] = 3.0
    return g.sum(x)


def container(params):
    params["w"] = params["w"] * 2
    return g.sum(params["w"])


def nothing(x):
    g.sum(x)


def closure():
    count = 0

    def closed(x):
        nonlocal count
        count += 1
        return g.sum(x)

    return closed


IMPORTS = "import contextlib, datetime as dt, os, socket, subprocess, sys, time, uuid"
FOUND = """
sys.stderr.write("loss") | writes to stderr
GENERATOR.random(3) | changes the global `GENERATOR`
PYTHON.random() | changes the global `PYTHON`
global COUNT; COUNT += 1 | changes the global `COUNT`
LOG.append(1) | changes the global `LOG`
STATE["n"][0] += 1 | changes the global `STATE`
HOLDER.seen.append(1) | changes the global `HOLDER`
Holder.n += 1 | changes the global `Holder`
own.COUNTED = getattr(own, "COUNTED", 0) + 1 | changes the global `own.COUNTED`
with TARGET.open("a") as file: file.write("x") | writes to a file
os.environ["GRAPHDUEL_TEST_EFFECT"] = "1" | changes os.environ
subprocess.run([sys.executable, "-c", ""], check=True) | starts a process
with socket.socket() as one, contextlib.suppress(OSError): one.connect(("127.0.0.1", 9)) | opens a connection
Path(__file__).read_bytes() | reads a file
np.load(TARGET.with_suffix(".npy")) | reads a file
[*TARGET.parent.iterdir()] | reads a folder
TARGET.exists() | looks at a file
time.time() | reads a clock
dt.datetime.now(dt.UTC) | reads a clock
os.environ.get("GRAPHDUEL_TEST_EFFECT") | reads os.environ
os.getenv("GRAPHDUEL_TEST_EFFECT") | reads os.environ
os.urandom(1) | draws from os.urandom
uuid.uuid4() | draws from os.urandom
input() | reads stdin
STATE["file"].seek(0); STATE["file"].read() | reads a file
STATE["socket"].send(b"1") | sends over a connection
time.sleep(0.0) | sleeps
"""
"""A statement of a function, and the one effect that is found in it."""


@together(
    "f,what,text",
    [
        (prints, "writes to stdout", "print("),
        (draws, "changes the state of Python's random", "random.random()"),
        (draws_numpy, "changes the state of np.random", "np.random.rand"),
        (default, "changes the default argument `calls` of default", "calls.append"),
        (attribute, "changes an attribute of attribute", "attribute.calls ="),
        (argument, "changes its argument `x`", "x[0] = 3.0"),
        (nothing, "returns None", "def nothing"),
    ],
)
def test_an_effect_is_found_with_its_line(f, what, text):
    assert effects_of(f, (X,)) == [SideEffect(what, here(f, text))]
    assert list(X) == [1.0, 1.0, 1.0]


@together("row", FOUND.strip().splitlines())
def test_a_statement_with_an_effect_is_found(row, tmp_path, monkeypatch):
    statement, what = row.split(" | ")
    text = f"{IMPORTS}\ndef f(x):\n    {statement}\n    return g.sum(x)\n"
    (tmp_path / "subject.py").write_text(text, "utf-8")
    np.save(tmp_path / "target.npy", X)
    one, other = socket.socketpair()
    with monkeypatch.context() as patch, one, other, Path(__file__).open("rb") as file:
        patch.setitem(globals(), "TARGET", tmp_path / "target")
        patch.setenv("GRAPHDUEL_TEST_EFFECT", "0")
        patch.setitem(globals(), "STATE", {"n": np.zeros(2), "file": file, "socket": one})
        names = globals()
        exec(compile(text, tmp_path / "subject.py", "exec"), names)
        assert effects_of(names.pop("f"), (X,)) == [SideEffect(what, "subject.py:3")]


LIBRARY = """
import functools, os, pathlib, sys, time
@functools.cache
def compiled(where):
    (pathlib.Path(where) / "compiled.bin").write_bytes(b"code")
    os.replace(pathlib.Path(where) / "compiled.bin", pathlib.Path(where) / "code.bin")
    return len((pathlib.Path(where) / "code.bin").read_bytes())
def computed(x, where):
    return x * compiled(where)
def logged(x, where):
    (pathlib.Path(where) / "log.txt").write_text("called")
    return x
@functools.cache
def prepared():
    path = pathlib.Path(__file__).with_name("table.bin")
    path.write_bytes(b"table")
    return len(path.read_bytes())
def timed(x):
    return x * (time.time() > 0) * ("HOME" in os.environ)
def read(path):
    with open(path, "rb") as file:
        return file.read()
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A module among the installed packages, which keeps files of its own."""
    home = tmp_path / "site-packages"
    home.mkdir()
    (home / "graphduel_test_library.py").write_text(LIBRARY, "utf-8")
    monkeypatch.syspath_prepend(home)
    yield importlib.import_module("graphduel_test_library")
    del sys.modules["graphduel_test_library"]


def test_what_a_library_keeps_for_itself_is_not_the_users(library, tmp_path, monkeypatch):
    """Compiled code, tables, what is imported when it is first needed, clocks that it asks itself."""
    (tmp_path / "later.py").write_text("VALUE = 2.0", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def imports(x):
        import later

        return g.sum(x) * later.VALUE

    for f in (
        lambda x: g.sum(library.computed(x, tmp_path)),
        lambda x: g.sum(x) * library.prepared(),
        lambda x: g.sum(library.timed(x)),
        imports,
    ):
        assert effects_of(f, (X,)) == []
    for f, what in (
        (lambda x: g.sum(library.logged(x, tmp_path)), "writes to a file"),
        (lambda x: g.sum(x) * len(library.read(tmp_path / "later.py")), "reads a file"),
    ):
        assert what in [effect.what for effect in effects_of(f, (X,))]


def test_compiled_code_that_a_framework_keeps_is_no_file_of_the_users(library, tmp_path, monkeypatch):
    """Of a loop that it compiles anew in each call, which it finds on the disk each time."""
    own = engines.find_engine(engines.OWN)
    monkeypatch.setattr(type(own), "caches", ("site-packages/graphduel_test_library.py",))
    (tmp_path / "code").write_bytes(b"code")
    assert effects_of(lambda x: g.sum(x) * len(library.read(tmp_path / "code")), (X,)) == []
    with_own_line = effects_of(lambda x: g.sum(x) * len((tmp_path / "code").read_bytes()), (X,))
    assert [effect.what for effect in with_own_line] == ["reads a file"]


def test_what_the_first_call_alone_does_is_done_once_by_every_mode(tmp_path):
    tables = {}
    np.save(tmp_path / "table.npy", X)

    def loads(x):
        if "table" not in tables:
            tables["table"] = np.load(tmp_path / "table.npy")
        return g.sum(x * tables["table"])

    assert [effect.what for effect in effects_of(loads, (X,))] == ["changes the outer variable `tables`"]


def test_what_it_calls_closes_over_and_is_bound_to_is_looked_at_too():
    assert effects_of(by_helper, (X,)) == [SideEffect("changes the global `LOG`", here(helper, "LOG.append"))]
    assert effects_of(closure(), (X,)) == [
        SideEffect("changes the outer variable `count`", here(closure, "count += 1"))
    ]
    ((found,),) = [effects_of(own.Moody(), (X,))]
    assert found.what == "changes the object that it is a method of"
    assert found.line.startswith("own_functions.py:")


def test_a_container_among_the_arguments_that_is_changed_is_found():
    params = {"w": X}
    assert effects_of(container, (params,)) == [SideEffect("changes its argument `params`", here(container, "params["))]
    assert params["w"] is X


@pytest.mark.parametrize(
    ("f", "example"),
    [
        (own.loss, (own.PARAMS, own.X)),
        (own.branch, (own.PARAMS, own.X)),
        (own.outputs, (own.X,)),
        (lambda x: g.sum(g.print(x, "x")), (X,)),
        (lambda x: g.sum(x * np.random.default_rng(0).random(3)), (X,)),
        (lambda x: g.sum(g.log(x * np.float32(warnings.warn("once", stacklevel=1) or 1))), (X,)),
        (lambda x: g.sum(x * len(LOG) * COUNT), (X,)),
    ],
)
def test_what_only_gives_a_result_has_none(f, example, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert effects_of(f, example) == []


@pytest.mark.parametrize("f", [argument, container])
def test_a_change_of_an_argument_is_refused_with_how_to_write_it(f):
    example = {"w": X} if f is container else X
    with pytest.raises(
        EffectsError, match=r"changes its argument `\w+` .*make a new array \(x = x \+ 1 instead of x \+= 1"
    ):
        compare.compare(f, [(example,)], **QUICK)


def test_random_states_and_streams_are_as_before():
    before = states()
    effects_of(draws, (X,))
    effects_of(draws_numpy, (X,))
    with pytest.raises(KeyError):
        effects_of(own.wrong, (own.PARAMS, own.X))
    assert states() == before


def states():
    shared = str(np.random.get_state())  # noqa: NPY002  (what is looked after)
    return random.getstate(), shared, sys.stdout, sys.stderr, sys.gettrace()


def test_effects_are_refused_before_anything_is_timed_unless_allowed():
    with pytest.raises(
        EffectsError, match=r"^prints does more than give a result: writes to stdout \(test_effects_of"
    ) as told:
        compare.compare(prints, [(X,)], **QUICK)
    assert told.value.exit_code == 1
    assert "--allow-effects (allow_effects=True)" in str(told.value)
    with pytest.raises(
        EffectsError, match=r"^nothing returns None \(.*\), so that there is nothing to compare; return"
    ):
        compare.compare(nothing, [(X,)], **QUICK)
    found = compare.compare(prints, [(X,)], **QUICK, allow_effects=True)
    assert found.verdict.steady.outcome != "not measured"
    assert found.records[0].settings["effects"] == [f"writes to stdout ({here(prints, 'print(')})"]
    assert "besides its result, prints writes to stdout" in repr(found)


@pytest.fixture
def command(tmp_path, monkeypatch):
    text = "import numpy as np\nimport graphs as g\ndef noisy(x):\n    print('here')\n    return g.sum(x)\n"
    (tmp_path / "noisy_file.py").write_text(text + "inputs = [(np.ones(3),)]\n", "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    return ["compare", f"{tmp_path}/noisy_file.py:noisy", "--processes", "0", "--seconds", "0.01"]


@pytest.mark.slow
def test_the_command_refuses_with_1_and_the_line(command):
    done = CliRunner().invoke(graphduel, command)
    assert done.exit_code == 1
    assert "writes to stdout (noisy_file.py:4)" in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_the_command_allows_effects_where_it_is_told_to(command):
    assert CliRunner().invoke(graphduel, [*command, "--allow-effects"]).exit_code in (0, 3)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(values, values)
def test_a_fingerprint_stays_while_a_value_does_and_tells_a_change_at_any_depth(value, other):
    outer = {"a": [value], "b": np.arange(3.0)}
    before = fingerprint(outer)
    assert fingerprint(outer) == before
    outer["a"][0] = [other, value]
    assert fingerprint(outer) != before
    outer["a"][0] = value
    assert fingerprint(outer) == before
    outer["b"][1] = -0.0
    assert fingerprint(outer) != before


# Code of the user's own that is installed

INSTALLED = """
import functools
import graphs as g

SEEN = []

def prints(x):
    print("seen")
    return g.sum(x)

def remembers(x):
    SEEN.append(1)
    return g.sum(x)

class Model:
    def loss(self, x):
        return prints(x)

method = Model().loss
partial = functools.partial(prints)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment") / "site-packages"
    (folder / "users_package").mkdir(parents=True)
    (folder / "users_package" / "__init__.py").write_text("", "utf-8")
    (folder / "users_package" / "train.py").write_text(INSTALLED, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module("users_package.train")
    for name in ("users_package", "users_package.train"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("prints", r"writes to stdout \(train\.py:8\)"),
        ("remembers", r"SEEN"),
        ("method", r"writes to stdout \(train\.py:8\)"),
        ("partial", r"writes to stdout \(train\.py:8\)"),
    ],
)
def test_a_function_whose_package_is_installed_is_the_users_all_the_same(installed, name, told):
    with pytest.raises(EffectsError, match=told):
        compare.compare(getattr(installed, name), [(X,), (X,)], **QUICK)
