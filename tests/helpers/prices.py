"""A machine with prices that a test can reckon with."""

import numpy as np
from click.testing import CliRunner

import graphs as g
from compare.advice.costs import Costs, Curve, Kernel, Overhead
from compare.advice.work import StepSeconds
from compare.cli.command import graphduel

US = 1e-6
FLAT = Kernel(Curve(((1.0, US),)))
FREE = Curve(((0.0, 0.0),))
MACHINE = {"cpu": "one", "numpy": "2"}


def costs(**change):
    """A machine on which every kernel takes a microsecond, and nothing else anything."""
    nothing = Overhead(0.0, 0.0, 0.0)
    names = ("add", "sum:rows", "matmul", "matmul:thin", "matmul:vector", "concat")
    given = {
        "machine": MACHINE, "kernels": dict.fromkeys(names, FLAT), "fresh": FREE, "returned": (), "moved": FREE,
        "planned": FREE, "row": 0.0, "lane": 0.0, "block": 0.0, "dynamic": nothing, "plain": nothing,
        "static": nothing, "compile": nothing, "spread": 0.1,
    }  # fmt: skip
    return Costs(**{**given, **change})


def square_sum(x):
    return g.sum(x * x)


X = np.ones(8, np.float32)


# The advice


def parts(total):
    return StepSeconds(kernels=total)


def advise(*arguments):
    return CliRunner().invoke(graphduel, ["advise", *map(str, arguments)])
