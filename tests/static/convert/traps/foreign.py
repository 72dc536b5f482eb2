"""Objects that the journal does not know, and functions of which nothing tells what they change."""

import array
import collections
import contextlib
import contextvars
import dataclasses
import io
import itertools
import json
import logging
import math
import operator
import os
import sys
import types
import warnings

import numpy as np

import graphs as g
from tests.static.convert.table import refused, right, rows

SETTING = contextvars.ContextVar("SETTING", default=1.0)
BUFFER = io.StringIO()
LEVELS = array.array("d", [1.0, 2.0])


class Kept:
    pass


@right
def a_buffer_of_the_branch(x):
    y = g.sum(x)
    if y > 0:
        kept = io.StringIO()
        kept.write("abc")
        y = y * len(kept.getvalue())
    return y


@refused
def the_environment(x):
    os.environ["GRAPHDUEL_TRAP"] = "a"
    y = g.sum(x)
    if y > 0:
        os.environ["GRAPHDUEL_TRAP"] = "abc"
    return y * len(os.environ["GRAPHDUEL_TRAP"])


@refused
def the_environment_by_a_method(x):
    y = g.sum(x)
    if y > 0:
        os.environ.setdefault("GRAPHDUEL_OTHER_TRAP", "abc")
    else:
        os.environ.pop("GRAPHDUEL_OTHER_TRAP", None)
    return y * len(os.environ.get("GRAPHDUEL_OTHER_TRAP", "a"))


@refused
def a_stack_of_exits(x):
    log, y = [], g.sum(x)
    with contextlib.ExitStack() as stack:
        if y > 0:
            stack.callback(log.append, 1.0)
    return y * (len(log) + 1)


@refused
def the_interpreter(x):
    y = g.sum(x)
    before = sys.getrecursionlimit()
    if y > 0:
        sys.setrecursionlimit(before + 1)
    y = y * (sys.getrecursionlimit() - before + 1)
    sys.setrecursionlimit(before)
    return y


@refused
def how_numpy_tells_errors(x):
    y = g.sum(x)
    before = np.geterr()
    if y > 0:
        np.seterr(all="raise")
    y = y * (2.0 if np.geterr() == before else 3.0)
    np.seterr(**before)
    return y


@refused
def a_logger(x):
    y = g.sum(x)
    logger = logging.getLogger("graphduel.trap")
    logger.setLevel(logging.ERROR)
    if y > 0:
        logger.setLevel(logging.DEBUG)
    return y * logger.level


@refused
def a_warning(x):
    y = g.sum(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if y > 0:
            warnings.warn("abc", stacklevel=1)
        return y * (len(caught) + 1)


@refused
def an_iterator_that_goes_on(x):
    numbers, y = iter([1.0, 2.0, 3.0]), g.sum(x)
    if y > 0:
        y = y * sum(itertools.islice(numbers, 2))
    return y * next(numbers, 5.0)


@refused
def an_iterator_that_is_looped_over(x):
    numbers, y = iter([1.0, 2.0, 3.0]), g.sum(x)
    if y > 0:
        for value in numbers:
            y = y * value
    return y * (len(list(numbers)) + 1)


@refused
def an_iterator_that_is_unpacked(x):
    numbers, y = iter([1.0, 2.0, 3.0]), g.sum(x)
    if y > 0:
        first, *_ = numbers
        y = y * first
    return y * (len(list(numbers)) + 1)


@refused
def an_iterator_that_is_searched(x):
    numbers, y = iter([1.0, 2.0, 3.0]), g.sum(x)
    if y > 0:
        y = y * (2.0 if 2.0 in numbers else 3.0)
    return y * (len(list(numbers)) + 1)


@refused
def a_generator_that_is_sent(x):
    def adding():
        total = 1.0
        while True:
            total += yield total

    sums, y = adding(), g.sum(x)
    next(sums)
    if y > 0:
        sums.send(5.0)
    return y * sums.send(1.0)


@right
def pure_functions_of_the_library(x):
    y, words = g.sum(x), "a b".split()
    Pair = collections.namedtuple("Pair", "a b")
    if y > 0:
        n = math.sqrt(4.0) + max(1.0, 2.0) + len(words) + sum([1.0, 2.0])
        n += len(list(zip([1], [2]))) + len(dict(a=1)) + len(sorted([2, 1])) + int("3") + float("2")
        n += len(tuple(reversed([1, 2]))) + len(list(itertools.chain([1], [2]))) + abs(-1) + round(1.2)
        n += Pair(1, 2).a + len("abc".upper()) + len(", ".join(words)) + np.float64(2) + np.sum(np.ones(2))
        n += dataclasses.replace(Held(1.0), value=2.0).value + operator.add(1, 2) + math.prod([1, 2])
        n += len(json.dumps([1])) + isinstance(n, float) + callable(len) + hash("a") * 0 + divmod(7, 2)[0]
        y = y * n
    return y


@dataclasses.dataclass
class Held:
    value: float


@refused
def a_function_of_the_library_with_state(x):
    y = g.sum(x)
    registry = {}
    if y > 0:
        sys.modules["graphduel_trap"] = types.ModuleType("graphduel_trap")
    registry.update(sys.modules)
    return y * (2.0 if "graphduel_trap" in registry else 3.0)


rows(
    __name__,
    right="""
first, y = {"k": 1.0}, g.sum(x) | if y > 0: collections.ChainMap(first)["k"] = 5.0 | y * first["k"]
kept, y = collections.deque([1.0, 2.0]), g.sum(x) | if y > 0: kept.rotate(1) | y * kept[0]
kept, y = [1.0, 2.0], g.sum(x) | if y > 0: operator.setitem(kept, 0, 5.0) | y * kept[0]
kept, y = [1.0, 3.0], g.sum(x) | if y > 0: bisect.insort(kept, 2.0); kept.pop() | y * kept[1]
kept, y = [1.0, 3.0], g.sum(x) | if y > 0: list.__setitem__(kept, 0, 5.0); list.reverse(kept) | y * kept[0]
kept, y = types.SimpleNamespace(value=1.0), g.sum(x) | if y > 0: kept.value = x[0] | y * kept.value
""",
    refused="""
kept, y = array.array("d", [1.0, 2.0]), g.sum(x) | if y > 0: kept[0] = 5.0 | y * kept[0]
kept, y = array.array("d", [1.0, 2.0]), g.sum(x) | if y > 0: kept.append(5.0) | y * len(kept)
LEVELS[0] += 1.0 | g.sum(x) * LEVELS[0]
held = np.ones(2) | kept, y = memoryview(held), g.sum(x) | if y > 0: kept[0] = 5.0 | y * held[0]
held, y = np.ones(2), g.sum(x) | if y > 0: memoryview(held)[0] = 5.0 | y * held[0]
kept, y = io.StringIO(), g.sum(x) | if y > 0: kept.write("abc") | y * (len(kept.getvalue()) + 1)
BUFFER.write("a") | g.sum(x) * len(BUFFER.getvalue())
kept, y = io.StringIO(), g.sum(x) | if y > 0: print("abc", file=kept) | y * (len(kept.getvalue()) + 1)
kept, y = io.StringIO(), g.sum(x) | if y > 0: json.dump([1], kept) | y * (len(kept.getvalue()) + 1)
kept, y = io.StringIO(), g.sum(x) | if y > 0: io.StringIO.write(kept, "abc") | y * (len(kept.getvalue()) + 1)
SETTING.set(1.0) | y = g.sum(x) | if y > 0: SETTING.set(5.0) | y * SETTING.get()
kept, one, y = weakref.WeakValueDictionary(), Kept(), g.sum(x) | if y > 0: kept["k"] = one | y * (len(kept) + 1)
kept, one, y = weakref.WeakSet(), Kept(), g.sum(x) | if y > 0: kept.add(one) | y * (len(kept) + 1)
kept, y = queue.Queue(), g.sum(x) | if y > 0: kept.put(1.0) | y * (kept.qsize() + 1)
kept, y = collections.UserList([1.0]), g.sum(x) | if y > 0: kept[0] = 5.0 | y * kept[0]
kept, y = collections.UserDict(k=1.0), g.sum(x) | if y > 0: kept.update(k=5.0) | y * kept["k"]
kept, y = bytearray(b"ab"), g.sum(x) | if y > 0: kept[0] = 100 | y * kept[0]
kept, y = np.ones(2), g.sum(x) | if y > 0: kept[0] = 5.0 | y * kept[0]
kept, y = np.ones(2), g.sum(x) | if y > 0: np.copyto(kept, 5.0) | y * kept[0]
kept, y = np.ones(2), g.sum(x) | if y > 0: np.add(kept, 1.0, out=kept) | y * kept[0]
kept, y = np.ones(2), g.sum(x) | if y > 0: np.add.at(kept, 0, 1.0) | y * kept[0]
kept, y = np.ones(4), g.sum(x) | part = kept[:2] | if y > 0: part += 1.0 | y * kept[0]
kept, y = np.ones(2), g.sum(x) | if y > 0: kept.flat[0] = 5.0 | y * kept[0]
kept, y = np.ones(4), g.sum(x) | if y > 0: kept.shape = (2, 2) | y * len(kept)
numbers, y = iter([1.0, 2.0, 3.0]), g.sum(x) | if y > 0: y = y * len(list(numbers)) | y * (len(list(numbers)) + 1)
numbers, y = itertools.count(1), g.sum(x) | if y > 0: next(numbers) | y * next(numbers)
kept, y = array.array("d", [1.0, 2.0]), g.sum(x) | if y > 0: operator.setitem(kept, 0, 5.0) | y * kept[0]
""",
)
