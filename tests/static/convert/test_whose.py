"""Whose code is converted: the function asked for, its package and what wraps it, wherever these are installed."""

from __future__ import annotations

import importlib
import runpy
import sys
import zipfile

import numpy as np
import pytest

import dynamic
import static
from graphs.errors import ControlFlowError
from tests.helpers.together import together

HALVED = """
import graphs as g
def halved(x):
    return x / 2 if g.sum(x) > 0 else x
"""
TRAIN = """
import functools
import graphs as g
from .layers import halved
from . import layers

def loss(x):
    return g.sum(x) if g.sum(x) > 0 else g.sum(x * x)

def through_a_module(x):
    return g.sum(halved(x))

class Model:
    def loss(self, x):
        return g.sum(x) if g.sum(x) > 0 else g.sum(layers.halved(x))
    def __call__(self, x):
        return self.loss(x)

method = Model().loss
instance = Model()
partial = functools.partial(lambda scale, x: scale * loss(x), 2.0)
nested = lambda x: (lambda y: y if g.sum(y) > 0 else -y)(loss(x))
"""
WRAPPERS = """
import functools
import graphs as g
def wrapped(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args)
    return inner
def unnamed(f):
    def inner(*args):
        return f(*args)
    return inner
def branch(x):
    return g.sum(x) if g.sum(x) > 0 else g.sum(x * x)
"""
INPUTS = [np.array([1.0, 2.0]), np.array([-1.0, -2.0])]
NAMES = ("loss", "through_a_module", "method", "instance", "partial", "nested")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The folder of packages of an environment, with a package of the user's and one of wrappers."""
    home = tmp_path / "lib" / "site-packages"
    for path, text in (("mine/__init__.py", ""), ("mine/layers.py", HALVED), ("mine/train.py", TRAIN)):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text, "utf-8")
    (home / "wrappers.py").write_text(WRAPPERS, "utf-8")
    monkeypatch.syspath_prepend(str(home))
    yield home
    for name in ("mine", "mine.train", "mine.layers", "wrappers"):
        sys.modules.pop(name, None)


def agree(f):
    """The static engine converts f, and gives what the dynamic one gives, for values on both sides of its branch."""
    step = static.jit(f, convert=True)
    for x in INPUTS:
        np.testing.assert_array_equal(step(x), dynamic.tensor(f(dynamic.tensor(x))).numpy())


@together("name", NAMES)
def test_a_package_that_is_installed_is_the_users_where_its_function_is_asked_for(installed, name):
    agree(getattr(importlib.import_module("mine.train"), name))


@together("name", NAMES)
def test_so_is_one_in_an_archive(tmp_path_factory, name, monkeypatch, installed):
    archive = tmp_path_factory.mktemp("archive") / "site-packages" / "mine.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as packed:
        for path in installed.rglob("*.py"):
            packed.write(path, path.relative_to(installed))
    monkeypatch.syspath_prepend(str(archive))
    importlib.invalidate_caches()
    for module in ("mine", "mine.train", "mine.layers"):
        sys.modules.pop(module, None)
    agree(getattr(importlib.import_module("mine.train"), name))


def test_so_is_one_that_python_runs_by_its_name(installed):
    space = runpy.run_module("mine.train", run_name="__main__")
    agree(space["loss"])
    agree(space["through_a_module"])


@together("wrapper", ("wrapped", "unnamed"))
def test_what_wraps_the_function_is_converted_with_it(installed, wrapper):
    wrap = getattr(importlib.import_module("wrappers"), wrapper)

    def loss(x):
        return x.sum() if x.sum() > 0 else (x * x).sum()

    agree(wrap(loss))
    if wrapper == "wrapped":  # it names the package of what it wraps
        agree(wrap(importlib.import_module("mine.train").loss))
        agree(wrap(wrap(importlib.import_module("mine.train").through_a_module)))


def test_another_library_is_none_of_the_users_and_the_refusal_says_so(installed):
    branch = importlib.import_module("wrappers").branch

    def loss(x):
        return branch(x)

    with pytest.raises(ControlFlowError, match="branch is a function of a library, which is not converted"):
        static.jit(loss, convert=True)(INPUTS[0])
