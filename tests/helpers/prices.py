"""A machine with prices that a test can reckon with."""

import numpy as np
from click.testing import CliRunner

import graphs as g
from compare.advice.prediction import Prices
from compare.cli.command import graphduel
from compare.records.own import CallCounts, CountedProgram

US = 1e-6
MODES = ("dynamic", "static-exact")
MACHINE = {"cpu": "one", "numpy": "2"}
KERNELS = tuple(f"{family} kernels" for family in ("elementwise", "reduction", "product", "convolution", "other"))


def costs(machine=MACHINE, spread=0.1, **prices):
    """A machine on which every kernel takes a microsecond, and nothing else anything; `_` stands for a blank."""
    named = {name.replace("_", " "): price for name, price in prices.items()}
    return Prices(MODES, machine, {**dict.fromkeys(KERNELS, US), "kernels in blocks": US, **named}, spread)


def program(eager, compiled, compile=0.0, shapes=1, **counts):
    """A program that takes so many seconds in each mode, by the prices of `seconds`."""
    terms = ({"eager": eager}, {"compiled": compiled}, {"compile": compile})
    return CountedProgram("a program", [CallCounts(*terms, ops=3, **counts)], shapes)


def seconds(modes=MODES, spread=0.1):
    """Prices of 1 for each term of `program`."""
    return Prices(modes, MACHINE, {"eager": 1.0, "compiled": 1.0, "compile": 1.0}, spread)


def square_sum(x):
    return g.sum(x * x)


X = np.ones(8, np.float32)


def advise(*arguments):
    return CliRunner().invoke(graphduel, ["advise", *map(str, arguments)])
