"""Random programs whose expressions take generators: as far as a value says, twice, with calls and names set inside."""

from __future__ import annotations

from tests.static.convert.grammar import HEAD, TAIL, Writer

TAKEN = """
def taken(v, box):
    for w in v:
        box.count += 1
        if w > 0.1:
            yield w * 0.5
        else:
            yield w


def f(x, k):"""


class Streaming(Writer):
    """Writes programs with generators: `it` is one that is taken here and there."""

    def program(self) -> str:
        """The whole source."""
        lines = ["it = (counted(v) for v in x)"]
        lines += [line for _ in range(self.random.randint(2, 4)) for line in self.statement(0, loop=False)]
        lines += self.random.choice([[], ["s = s + sum(it, 0.0)"], ["s = s + next(it, 0.5)"]])
        return HEAD.replace("\ndef f(x, k):", TAKEN) + "\n".join(f"    {line}" for line in lines) + TAIL

    def items(self) -> str:
        """What gives items; no `:=` may stand in it."""
        ways = ["x", "x", "row", "map(late, x)", "taken(x, box)", f"(v * {self.number()} for v in x)"]
        ways += [f"filter(lambda v: v > {self.number()}, x)", f"(counted({self.leaf()}) for _ in range(2))"]
        return self.random.choice(ways)

    def element(self, depth: int) -> str:
        """What an item becomes: a call, a branch, a name that is set."""
        plain = ["v", "counted(v)", "bent(v)", f"v * {self.number()}", "(b := v)", "box.push(v)"]
        return self.random.choice([*plain, f"v if v > {self.number()} else {self.value(depth)}"])

    def generator(self, depth: int) -> str:
        """A generator expression."""
        condition = self.random.choice(["", "", "", f" if v > {self.number()}", " if counted(v) > 0"])
        return f"{self.element(depth)} for v in {self.items()}{condition}"

    def shortened(self, depth: int) -> str:
        """What Python's functions make of a generator."""
        ways = [
            f"sum(({self.generator(depth)}), 0.0)",
            f"next(({self.generator(depth)}), {self.value(depth)})",
            f"next(it, {self.leaf()})",
            f"max([{self.generator(depth)}], default=0.5)",
            f"sum(i * w for i, w in enumerate({self.items()}))",
            f"sum((v * w for v, w in zip({self.items()}, [0.5, 2.0, s])), 0.0)",
        ]
        return f"({self.random.choice(ways)} * 1.0)"

    def extreme(self, depth: int) -> str:
        """More of them."""
        return self.shortened(depth)

    def chained(self, depth: int) -> str:
        """any or all."""
        compared = f"({self.element(depth)}) {self.random.choice('<>')} {self.number()}"
        return f"{self.random.choice(['any', 'all'])}({compared} for v in {self.items()})"

    def negated(self, depth: int) -> str:
        """More of them."""
        return self.chained(depth)

    def list_work(self) -> list[str]:
        """A loop over a generator, which may leave it early."""
        leave = [f"    if {self.comparison(2)}:", "        break"] if self.random.random() < 0.5 else []
        over = self.random.choice(["it", self.items(), f"enumerate({self.items()})"])
        target = "i, v" if over.startswith("enum") else "v"
        return [f"for {target} in {over}:", *leave, "    a = a * 0.5 + v"]


def source(seed: int) -> str:
    """The program of a seed."""
    return Streaming(seed).program()
