"""Random programs with Python control flow: every statement that a conversion takes, nested, over values and numbers.

A program is `f(x, k)` of f64[3] and an i64[] between 0 and 3. Its loops are bounded, so that plain Python ends too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

DEEPEST = 3  # statements within statements, and expressions within expressions
INPUTS = 6

HEAD = '''"""A random program."""

import graphs as g


class Box:
    def __init__(self, value):
        self.value = value
        self.count = 0

    def push(self, amount):
        if amount > 0.5:
            self.value = self.value + amount * 0.25
        self.count += 1
        return self.value


def bent(v):
    if v > 0.3:
        return v * 0.5
    return -v


def steps(v, limit=3):
    count = 0
    while v > 0.2 and count < limit:
        v = v * 0.5
        count += 1
    return v + count


def f(x, k):
    a, b, n, calls = 0.5, x[1] * 1.0, 1, 0
    s, y = g.sum(x), x * 1.0
    row = [s * 1.0, x[0] * 2.0]
    named = {"k": x[2] * 1.0}
    box = Box(s * 0.5)

    def late(v):
        return v * 0.5 + s

    def counted(v):
        nonlocal calls
        calls = calls + 1
        return v * calls

'''
TAIL = """
    read = s + a + b * 0.5 + n * 0.25 + row[0] + row[-1] + named["k"] + box.value + box.count * 0.5 + calls
    return g.tanh((read + g.sum(y) * 0.5) * 0.1)
"""

Rule = Callable[..., Any]


class Writer:
    """Writes one program, from a seed; with `aliases` its array has another name, which comes and goes."""

    def __init__(self, seed: int, aliases: bool = False) -> None:
        self.random = Random(seed)
        self.aliases = aliases
        self.counters = 0

    def program(self) -> str:
        """The whole source."""
        lines = [line for _ in range(self.random.randint(2, 5)) for line in self.statement(0, loop=False)]
        if not self.aliases:
            return HEAD + "\n".join(f"    {line}" for line in lines) + TAIL
        lines = ["z = y", *lines, "s = s + g.sum(z) * 0.5"]
        return HEAD + "\n".join(f"    {line}" for line in lines) + TAIL

    # Expressions -----------------------------------------------------------------------------------------------

    def value(self, depth: int = 0) -> str:
        """An expression whose value is a number or f64[]."""
        if depth >= DEEPEST or self.random.random() < 0.35:
            return self.leaf()
        rules = {self.sum_or_product: 12, self.ternary: 3, self.call: 4, self.extreme: 2, self.shortened: 1}
        return self.drawn(rules)(depth + 1)

    def leaf(self) -> str:
        """A name, an item, an attribute or a number."""
        read = ["a", "b", "n", "s", "x[0]", "x[1]", "x[2]", "row[0]", "row[1]", 'named["k"]', "box.value", "y[0]"]
        return self.random.choice([*read, self.number(), self.number()])

    def number(self) -> str:
        """A constant."""
        return self.random.choice(["0.5", "1", "-1.5", "2", "0.25"])

    def sum_or_product(self, depth: int) -> str:
        """Two values, by an operator."""
        return f"({self.value(depth)} {self.random.choice('+-*')} {self.value(depth)})"

    def ternary(self, depth: int) -> str:
        """One of two values."""
        return f"({self.value(depth)} if {self.test(depth)} else {self.value(depth)})"

    def call(self, depth: int) -> str:
        """A helper, a closure, a method, or an op that bounds what it takes."""
        function = self.random.choice(["bent", "steps", "late", "counted", "box.push", "g.tanh", "g.sin", "abs"])
        return f"{function}({self.leaf() if function[:2] == 'g.' else self.value(depth)} * 1.0)"

    def extreme(self, depth: int) -> str:
        """Python's own max and min."""
        return f"{self.random.choice(['max', 'min'])}({self.value(depth)}, {self.value(depth)})"

    def shortened(self, depth: int) -> str:
        """A sum over rows, each a branch."""
        return f"sum([v if v > {self.number()} else {self.value(depth)} for v in x])"

    def test(self, depth: int = 0) -> str:
        """A comparison, a chain of them, or a combination."""
        if depth >= DEEPEST:
            return self.comparison(depth)
        rules = {self.comparison: 10, self.negated: 2, self.chained: 1, self.combined: 4}
        return self.drawn(rules if depth else {**rules, self.walrus: 1})(depth + 1)

    def comparison(self, depth: int) -> str:
        """Two values compared."""
        return f"{self.value(depth)} {self.random.choice(['<', '>', '<=', '>='])} {self.value(depth)}"

    def negated(self, depth: int) -> str:
        """`not` a test."""
        return f"not ({self.test(depth)})"

    def chained(self, depth: int) -> str:
        """A value between two."""
        return f"{self.number()} < {self.value(depth)} < {self.value(depth)}"

    def combined(self, depth: int) -> str:
        """`and` or `or`, which may skip the second test."""
        return f"({self.test(depth)} {self.random.choice(['and', 'or'])} {self.test(depth)})"

    def walrus(self, depth: int) -> str:
        """A test that binds a name."""
        return f"(b := {self.value(depth)}) > {self.number()}"

    # Statements ------------------------------------------------------------------------------------------------

    def block(self, depth: int, loop: bool) -> list[str]:
        """Statements, one level further in."""
        lines = [line for _ in range(self.random.randint(1, 2)) for line in self.statement(depth, loop)]
        return [f"    {line}" for line in lines]

    def statement(self, depth: int, loop: bool) -> list[str]:
        """One statement, as lines; `loop` says whether break and continue may stand here."""
        simple: dict[Rule, int] = {
            self.assigned: 6,
            self.augmented: 3,
            self.written: 4,
            self.swapped: 1,
            self.list_work: 1,
        }
        if depth >= DEEPEST or self.random.random() < 0.4:
            return self.drawn(simple)()
        compound: dict[Rule, int] = {
            self.branch: 9, self.for_loop: 4, self.while_loop: 4, self.early_return: 1, self.guarded: 1, self.matched: 1
        }  # fmt: skip
        if loop:
            compound |= {self.jump: 4, self.for_loop: 1, self.while_loop: 1}  # few loops in loops: they are unrolled
        return self.drawn(compound)(depth + 1, loop)

    def assigned(self) -> list[str]:
        """A name set."""
        return [f"{self.random.choice('abss')} = {self.value()}"]

    def augmented(self) -> list[str]:
        """A name, an item, an attribute or an array increased."""
        target = self.random.choice(["a", "s", "row[0]", "row[1]", 'named["k"]', "box.value"])
        kind = self.random.random()
        if kind < 0.3:
            return [f"n += {self.random.randint(1, 3)}"]
        if kind < 0.5:
            name = self.random.choice("yyz") if self.aliases else "y"
            return [f"{name} {self.random.choice(['+=', '*='])} {self.value(1)}"]
        return [f"{target} {self.random.choice(['+=', '-='])} {self.value(1)}"]

    def written(self) -> list[str]:
        """An item, an attribute or an array replaced."""
        targets = ["row[0]", "row[1]", "row[-1]", 'named["k"]', "box.value", "y"]
        target = self.random.choice([*targets, "z"] if self.aliases else targets)
        if target == "z":
            return [self.random.choice(["z = y", "y = z", "y, z = z, y"])]
        return [f"y = y * 0.5 + {self.value(1)}" if target == "y" else f"{target} = {self.value(1)}"]

    def swapped(self) -> list[str]:
        """Several names at once."""
        return [self.random.choice([f"a, b = b, {self.value(1)}", f"a = s = {self.value(1)}", "a, (b, s) = s, (a, b)"])]

    def list_work(self) -> list[str]:
        """A list that is as long after as before; seldom one that is not, which is refused under a condition."""
        if self.random.random() < 0.1:
            return [f"row.append({self.value(1)})"]
        return [f"row.append({self.value(1)})", "s = s + row.pop()"]

    def branch(self, depth: int, loop: bool) -> list[str]:
        """if, elif, else."""
        lines = [f"if {self.test()}:", *self.block(depth, loop)]
        if self.random.random() < 0.25:
            lines += [f"elif {self.test()}:", *self.block(depth, loop)]
        if self.random.random() < 0.6:
            lines += ["else:", *self.block(depth, loop)]
        return lines

    def for_loop(self, depth: int, loop: bool) -> list[str]:
        """Over numbers, rows, lists, or as often as a value says."""
        over = self.random.choice(["range(3)", "x", "[a, 1.0, b]", "range(int(k))", "list(row)", "enumerate(x)"])
        name = self.random.choice(["t", "b"])
        target = f"i, {name}" if over == "enumerate(x)" else name
        lines = [f"for {target} in {over}:", *self.block(depth, loop=True)]
        return [*lines, f"    s = s + {name} * 0.5", *self.otherwise(depth, loop)]

    def while_loop(self, depth: int, loop: bool) -> list[str]:
        """With a counter, in the test or in a break."""
        self.counters += 1
        counter, most = f"i{self.counters}", self.random.choice([3, 5])
        if self.random.random() < 0.3:
            head = [
                "while True:",
                f"    {counter} += 1",
                f"    if {counter} > {most} or {self.test()}:",
                "        break",
            ]
            return [f"{counter} = 0", *head, *self.block(depth, loop=True)]
        head = [f"while {self.test()} and {counter} < {most}:", f"    {counter} += 1"]
        return [f"{counter} = 0", *head, *self.block(depth, loop=True), *self.otherwise(depth, loop)]

    def otherwise(self, depth: int, loop: bool) -> list[str]:
        """The else of a loop, sometimes."""
        return ["else:", *self.block(depth, loop)] if self.random.random() < 0.2 else []

    def jump(self, depth: int, loop: bool) -> list[str]:
        """break or continue, under a test."""
        return [f"if {self.test()}:", f"    {self.random.choice(['break', 'continue'])}"]

    def early_return(self, depth: int, loop: bool) -> list[str]:
        """A return, under a test."""
        return [f"if {self.test()}:", f"    return g.tanh(s * {self.number()} + a)"]

    def guarded(self, depth: int, loop: bool) -> list[str]:
        """try and finally."""
        return ["try:", *self.block(depth, loop), "finally:", f"    s = s * 0.5 + {self.leaf()}"]

    def matched(self, depth: int, loop: bool) -> list[str]:
        """match on a value."""
        lines = ["match int(k):"]
        for pattern in ("0", "1 | 2", "_"):
            lines += [f"    case {pattern}:", *(f"    {line}" for line in self.block(depth, loop))]
        return lines

    def drawn(self, rules: dict[Rule, int]) -> Rule:
        """One of these, by their weights."""
        return self.random.choices(list(rules), list(rules.values()))[0]


def source(seed: int, aliases: bool = False) -> str:
    """The program of a seed."""
    return Writer(seed, aliases).program()


def inputs(seed: int, count: int = INPUTS) -> Sequence[tuple[Any, Any]]:
    """Arguments, on different paths."""
    random = np.random.default_rng(seed)
    return [(random.normal(scale=1.2, size=3), np.array(int(random.integers(0, 4)))) for _ in range(count)]
