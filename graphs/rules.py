"""The one kind of table in which a room says what it does for each op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from graphs import op as registry
from graphs.op import Op

R = TypeVar("R")

TABLES: list[RuleTable[Any]] = []
"""Every table that there is."""


class RuleTable(dict[Op, R]):
    """The rules of one room, by op: `table[op]` is the op's own rule, else that of its family, else `otherwise`.

    `otherwise` must be right for any op: opaque, one by one, NumPy's kernel, refused by name. A user's op gets it: no
    table has a rule for its family. `in` tells whether an op has a rule of its own.

        padding = RuleTable("padding", otherwise=anything, families={"elementwise": by_element})

        @padding.for_op("take", "take_along_axis")
        def picked(node, other, sources): ...

        padding[node.op](node, other, sources)
    """

    def __init__(self, room: str, *, otherwise: R, families: Mapping[str, R] | None = None) -> None:
        super().__init__()
        self.room, self.otherwise, self.families = room, otherwise, dict(families or {})
        TABLES.append(self)

    def for_op(self, *ops: Op | str) -> Callable[[R], R]:
        """Enter a rule for ops, or for those of these names. Raises as `enter` does."""

        def enter(rule: R) -> R:
            self.enter(dict.fromkeys(ops, rule))
            return rule

        return enter

    def enter(self, rules: Mapping[Op | str, R] | Mapping[Op, R] | Mapping[str, R]) -> None:
        """Enter a rule for each op. Raises ValueError for a second one, and GraphError for a name that no op has."""
        for key, rule in rules.items():
            op = key if isinstance(key, Op) else registry.get(key)
            if op in self:
                raise ValueError(f"{self.room}: {op.name} has a rule already")
            self[op] = rule

    def __missing__(self, op: Op) -> R:
        return self.families.get(op.family, self.otherwise)

    def answer(self, op: Op) -> Literal["own", "family", "otherwise"]:
        """By what an op is treated."""
        return "own" if op in self else "family" if op.family in self.families else "otherwise"
