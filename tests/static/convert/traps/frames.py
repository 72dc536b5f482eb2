"""What looks at a frame or at variables: eval, exec, locals, vars, dir, globals, and code that is made of text."""

import graphs as g
from tests.static.convert.table import refused, right, rows

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


rows(
    __name__,
    right="""
x[0] * globals()["FACTOR"]
NAMES["doubled"](x[0])
items = [] | NAMES["adding"](x[0], items) | items[0] * len(items)
""",
    refused="""
x[0] * ("value" in dir(NAMES["Box"](1.0)))
box = NAMES["Box"](x[0]) | vars(box)["value"] * len(vars(box))
names = {"v": x[0]} | exec("w = v * 2", names) | names["w"]
y = after_a_branch(x) | g.sum(x) * eval("y + 1", {"y": y})
y = after_a_branch(x) | g.sum(x) * eval("y")
y = 3.0 | if g.sum(x) > 0: y = 5.0 | g.sum(x) * eval("y")
y, calculate = x[0], eval | if x[1] > 0: y = x[2] | calculate("y * 2")
eval("a if a > 0 else -a", {"a": x[0]})
items = [1.0] | if x[0] > 0: eval("items.append(2.0)", {"items": items}) | x[1] * len(items)
y = 1.0 | exec("y = 2.0") | x[0] * y
names = {"v": x[0]} | if x[1] > 0: exec("v = v * 2", names) | names["v"]
y = 3.0 | if g.sum(x) > 0: y = 5.0 | g.sum(x) * locals()["y"]
y = x[0] | if x[1] > 0: y = x[2] | y * len("{y}".format(**locals()))
y = 3.0 | if g.sum(x) > 0: y = 5.0 | g.sum(x) * vars()["y"]
y = g.sum(x) | y * len(dir())
names = globals | x[0] * names()["FACTOR"]
y = x[0] | if x[1] > 0: y = x[2] | sys._getframe().f_locals["y"]
y = x[0] | if x[1] > 0: y = x[2] | inspect.currentframe().f_locals["y"] * len(inspect.stack())
NAMES["bent"](x[0])
x[0] * len(NAMES["shown"](x[0]))
items = [x[1]] | if x[0] > 0: NAMES["adding"](x[0], items) | x[1] * len(items)
box = NAMES["Box"](x[1]) | if x[0] > 0: box.add(x[2]) | box.value
""",
)
