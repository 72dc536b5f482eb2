"""How a user names a function and gives its calls: in a file, a package or an object, as tuples or as batches."""

import collections
import dataclasses
import itertools
import sys
from typing import NamedTuple

import numpy as np
import pytest

import graphs as g
import static
from compare import engines
from compare.engines.step import loss_in
from compare.errors import InputsError
from compare.own import compare
from compare.records.cells import Parity, Time
from compare.records.record import Failure, records_of
from compare.subjects import origin
from compare.subjects.case import calls_in
from compare.subjects.origin import PlaceInFile

X, Y = np.ones(3), np.zeros(3)
PACKAGE = {
    "wares/__init__.py": "",
    "wares/nets.py": "from wares.sub import deep\nSCALE = deep.SCALE\n",
    "wares/sub/__init__.py": "",
    "wares/sub/deep.py": "SCALE = 2.0\n",
    "wares/train.py": """
from .nets import SCALE
class Trainer:
    def step(self, x):
        return x * SCALE
trainer = Trainer()
def loss(x):
    return x * SCALE
inputs = [(1.0,)]
""",
}


class Pair(NamedTuple):
    x: object
    y: object


class Out(NamedTuple):
    more: float
    loss: float


@dataclasses.dataclass
class Batch:
    x: object
    loss: object = None


@pytest.fixture
def package(tmp_path, monkeypatch):
    for path, text in PACKAGE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "wares"]:
        del sys.modules[name]


@pytest.mark.parametrize("written", ["wares/train.py:loss", "wares.train:loss", "wares/train.py:trainer.step"])
def test_code_of_a_package_is_found_with_its_relative_imports_here_and_in_another_process(package, written):
    f, calls = origin.load_function(written, None)
    assert (f(3.0), calls) == (6.0, [(1.0,)])
    place = origin.origin_of(f) or PlaceInFile.of(written).origin()
    assert place.module == "wares.train"
    assert place.load() == f


def test_a_file_below_pythonpath_is_one_of_a_package_without_an_init(package, monkeypatch):
    (package / "wares" / "__init__.py").unlink()
    monkeypatch.setenv("PYTHONPATH", str(package))
    monkeypatch.chdir(package / "wares")
    assert origin.load_function("train.py:loss", None)[0](3.0) == 6.0


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("wares.trian:loss", "there is no file wares.trian; write FILE.py:function"),
        ("wares/train.py:trainer.stop", "trainer in wares/train.py has no 'stop'; did you mean step"),
        ("wares/train.py:trainr.step", "wares/train.py defines no 'trainr'; did you mean trainer"),
    ],
)
def test_a_name_that_is_none_is_refused_with_the_nearest(package, written, said):
    with pytest.raises(InputsError) as told:
        origin.load_object(written)
    assert said in str(told.value).replace("'step'", "step").replace("'trainer'", "trainer")


@dataclasses.dataclass(frozen=True)
class Task:
    batch: Batch
    scale: float


def of_a_dataclass(w, batch):
    return g.sum((batch.x @ w - batch.loss) ** 2)


def of_one_inside(w, task):
    return of_a_dataclass(w, task.batch) * task.scale


def that_branches(w, batch):
    return g.sum(batch.x @ w) if g.sum(batch.x) > 0 else g.sum(w)


def of_parameters(batch):
    return g.sum(batch.x * batch.loss)


def of_a_slice(w, rows):
    return g.sum(w[rows] ** 2)


W = np.linspace(0, 1, 9).reshape(3, 3)


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        pytest.param(of_a_dataclass, [(W, Batch(W, W)), (W, Batch(W, W + 1))], marks=pytest.mark.slow),
        (of_one_inside, [(W, Task(Batch(W, W), 2.0)), (W, Task(Batch(W, W), 3.0))]),
        pytest.param(that_branches, [(W, Batch(W)), (W, Batch(W - 1))], marks=pytest.mark.slow),
        pytest.param(of_parameters, [(Batch(W, W),), (Batch(W, W + 1),)], marks=pytest.mark.slow),
        pytest.param(of_a_slice, [(W, slice(0, 2)), (W, slice(1, None, 2))], marks=pytest.mark.slow),
    ],
)
def test_dataclasses_and_slices_are_arguments_of_our_engine(function, calls):
    result = compare(function, calls, processes=0, seconds=0.01)
    assert [row.status for parity in records_of(result.records, Parity) for row in parity.modes.values()] == [
        "ok",
        "ok",
    ]
    assert {mode for time in records_of(result.records, Time) for mode in time.modes} == {"dynamic", "static-exact"}
    assert not records_of(result.records, Failure)


def test_a_slice_is_a_constant_that_compiles_once_for_each_value():
    step = static.jit(of_a_slice)
    for rows in (slice(0, 2), slice(0, 2), slice(0, 1), slice(False, 1)):
        assert step(W, rows) == np.sum(W[rows] ** 2)
    assert step.stats.compiles == 3


class Loader:
    """Gives batches, each time anew, and is no list."""

    def __init__(self, *batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def one(batch):
    return batch


def two(x, y):
    return x, y


@pytest.mark.parametrize(
    ("function", "batch", "call"),
    [
        (two, (X, Y), (X, Y)),
        (two, [X, Y], (X, Y)),
        (two, Pair(X, Y), (X, Y)),
        (one, {"x": X}, ({"x": X},)),
        (one, X, (X,)),
        (one, [X], (X,)),
        (one, Batch(X), (Batch(X),)),
        (one, Pair(X, Y), (Pair(X, Y),)),
        (one, [X, Y], ([X, Y],)),
        (one, (X, Y), ((X, Y),)),
        (one, ((X, Y), X), (((X, Y), X),)),
        (one, (X,), (X,)),
        (one, collections.UserDict(x=X), (collections.UserDict(x=X),)),
    ],
)
def test_batches_are_calls_as_loops_take_them(function, batch, call):
    for inputs in ([batch, batch], Loader(batch, batch), iter([batch, batch])):
        calls = calls_in(inputs, function)
        assert len(calls) == 2
        assert [type(value) for value in calls[0]] == [type(value) for value in call]
        assert repr(calls[0]) == repr(call)


def test_a_stream_without_end_is_refused_with_how_to_take_its_start():
    with pytest.raises(InputsError, match=r"may never end; take the first: .*islice"):
        calls_in(itertools.repeat((X, Y)), two)
    assert len(calls_in(itertools.islice(itertools.repeat((X, Y)), 16), two)) == 16
    assert len(calls_in([(X, Y)] * 600, two)) == 600


@pytest.mark.parametrize("inputs", [[X, Y], [3], [], {"x": X}, X, "text", [()], Loader()])
def test_what_is_no_call_is_refused_with_how_to_write_one(inputs):
    with pytest.raises(InputsError, match=r"write inputs = \[\(x, y\)\]"):
        calls_in(inputs, two)


@pytest.mark.parametrize(
    ("returned", "loss"),
    [
        (1.0, 1.0),
        ((1.0, "more"), 1.0),
        ([1.0, "more"], 1.0),
        ({"more": 2.0, "loss": 1.0}, 1.0),
        (collections.OrderedDict(more=2.0, loss=1.0), 1.0),
        (collections.UserDict(loss=1.0), 1.0),
        (Batch("x", 1.0), 1.0),
        (Out(2.0, 1.0), 1.0),
        (Pair(1.0, 2.0), 1.0),
        ({"more": 2.0}, None),
    ],
)
def test_a_loss_is_the_value_the_first_of_a_tuple_or_what_is_called_loss(returned, loss):
    assert loss_in(returned) == loss


def test_a_file_that_imports_keras_alone_runs_in_its_backend(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    assert engines.of_imports("import keras") == "tensorflow"
    (tmp_path / "keras.json").write_text('{"backend": "torch"}', "utf-8")
    assert engines.of_imports("from keras import layers") == "torch"
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert engines.of_imports("import keras, numpy") == "jax"
    assert engines.of_imports("import keras, torch") == "torch"
    for line in ('os.environ["KERAS_BACKEND"] = "torch"', "os.environ.setdefault('KERAS_BACKEND', 'torch')"):
        assert engines.of_imports(f"import os\n{line}\nimport keras") == "torch"
        assert engines.framework_of_imports(f"{line}\nimport keras") == "imports keras, whose backend is torch"
    assert engines.framework_of_imports("import jax") == "imports jax"
    monkeypatch.setenv("KERAS_BACKEND", "numpy")
    assert engines.of_imports("import keras") is None
