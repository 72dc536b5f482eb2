"""What looks at a frame or at variables: eval, exec, locals, vars, dir, globals, and code that is made of text."""

import inspect
import sys

import graphs as g
from tests.static.convert.table import refused, right

FACTOR = 2.0
NAMES = {}
exec(
    """
total = 0.0

def bent(v):
    return v * 2 if v > 0 else v * 3

def doubled(v):
    return v * 2

def adding(v, items):
    items.append(v)
    return v

def shown(v):
    return f"{v}"

class Box:
    def __init__(self, value):
        self.value = value

    def add(self, amount):
        self.value = self.value + amount
        return self.value
""",
    NAMES,
)


def after_a_branch(x):
    y = 3.0
    if g.sum(x) > 0:
        y = 5.0
    return y


@refused
def eval_of_a_variable(x):
    y = after_a_branch(x)
    return g.sum(x) * eval("y")


@refused
def eval_of_a_variable_that_a_branch_sets(x):
    y = 3.0
    if g.sum(x) > 0:
        y = 5.0
    return g.sum(x) * eval("y")


@refused
def eval_by_another_name(x):
    y, calculate = x[0], eval
    if x[1] > 0:
        y = x[2]
    return calculate("y * 2")


@right
def eval_of_what_it_is_handed(x):
    y = after_a_branch(x)
    return g.sum(x) * eval("y + 1", {"y": y})


@refused
def eval_that_decides_on_a_value(x):
    return eval("a if a > 0 else -a", {"a": x[0]})


@refused
def eval_under_a_test(x):
    items = [1.0]
    if x[0] > 0:
        eval("items.append(2.0)", {"items": items})
    return x[1] * len(items)


@refused
def exec_that_sets_a_variable(x):
    y = 1.0
    exec("y = 2.0")
    return x[0] * y


@right
def exec_in_a_dict(x):
    names = {"v": x[0]}
    exec("w = v * 2", names)
    return names["w"]


@refused
def exec_in_a_dict_under_a_test(x):
    names = {"v": x[0]}
    if x[1] > 0:
        exec("v = v * 2", names)
    return names["v"]


@refused
def locals_after_a_branch(x):
    y = 3.0
    if g.sum(x) > 0:
        y = 5.0
    return g.sum(x) * locals()["y"]


@refused
def locals_in_a_format(x):
    y = x[0]
    if x[1] > 0:
        y = x[2]
    return y * len("{y}".format(**locals()))


@refused
def vars_after_a_branch(x):
    y = 3.0
    if g.sum(x) > 0:
        y = 5.0
    return g.sum(x) * vars()["y"]


@right
def vars_of_an_object(x):
    box = NAMES["Box"](x[0])
    return vars(box)["value"] * len(vars(box))


@refused
def dir_of_variables(x):
    y = g.sum(x)
    return y * len(dir())


@right
def dir_of_an_object(x):
    return x[0] * ("value" in dir(NAMES["Box"](1.0)))


@right
def globals_by_its_name(x):
    return x[0] * globals()["FACTOR"]


@refused
def globals_by_another_name(x):
    names = globals
    return x[0] * names()["FACTOR"]


@refused
def a_frame_by_sys(x):
    y = x[0]
    if x[1] > 0:
        y = x[2]
    return sys._getframe().f_locals["y"]


@refused
def a_frame_by_inspect(x):
    y = x[0]
    if x[1] > 0:
        y = x[2]
    return inspect.currentframe().f_locals["y"] * len(inspect.stack())


@right
def text_that_decides_nothing(x):
    return NAMES["doubled"](x[0])


@refused
def text_that_decides_on_a_value(x):
    return NAMES["bent"](x[0])


@right
def text_that_writes_where_it_is_reached(x):
    items = []
    NAMES["adding"](x[0], items)
    return items[0] * len(items)


@refused
def text_that_shows_a_value(x):
    return x[0] * len(NAMES["shown"](x[0]))


@refused
def text_that_writes_under_a_test(x):
    items = [x[1]]
    if x[0] > 0:
        NAMES["adding"](x[0], items)
    return x[1] * len(items)


@refused
def a_method_of_text_under_a_test(x):
    box = NAMES["Box"](x[1])
    if x[0] > 0:
        box.add(x[2])
    return box.value


@refused
def a_body_of_a_class_that_decides_on_a_value(x):
    class Chosen:
        value = 1.0 if x[0] > 0 else 2.0

    return x[1] * Chosen.value


@right
def a_body_of_a_class_reads_its_own_variables(x):
    y = x[0]
    if x[1] > 0:
        y = x[2]

    class Kept:
        names = 2.0
        value = locals()["names"]

    return y * Kept.value
