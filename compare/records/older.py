"""Lines of kinds that earlier versions wrote, as lines of today's: an old report opens as it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

CELL = "framework cell"
"""A process of a framework on a workload: today times, with parity, compilations and bytes beside them."""
_BASE = "eager"
_TIMES = (
    "build", "first", "calls_per_block", "warmup", "steady", "blocks", "stream", "compiles", "compile_seconds",
    "useful", "computed", "whole",
)  # fmt: skip
_PARITY = ("output_error", "gradient_error", "tolerance")


def upgraded(value: Any) -> Any:
    """The JSON value of a line as today's version would have written it."""
    if not isinstance(value, Mapping) or value.get("kind") != CELL:
        return value
    head = {name: field for name, field in value.items() if name not in ("arms", "version", "cache", "kind")}
    head.setdefault(_BASE, next(iter(value["arms"]), None))
    times = {arm: _only(row, _TIMES) for arm, row in value["arms"].items()}
    line = {**head, "kind": "time", "arms": times, "cache": value["cache"], "clock": "wall"}
    return {**line, "beside": list(_beside(head, value))}


def _beside(head: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    place = {name: head[name] for name in ("schema", "workload", "size", "arm", _BASE) if name in head}
    rows = value["arms"]
    agree = all(row["status"] in ("ok", "unsupported") for row in rows.values())
    parity = {arm: {"output_error": None, "gradient_error": None, "tolerance": 0.0, **_only(row, _PARITY)}
              for arm, row in rows.items()}  # fmt: skip
    yield {**place, "kind": "parity", "agree": agree, "arms": parity, "same_graph": None, "kernel_calls": {}}
    if value["cache"] == "warm":
        return
    told = {arm: {**_only(row, ("breaks", "limits")), "made": row.get("compilations", [])} for arm, row in rows.items()}
    yield {**place, "kind": "compilations", "version": value["version"], "arms": told}
    memory = {arm: {**_only(row, ()), "peak": row.get("peak") or 0, "held": row.get("held") or 0}
              for arm, row in rows.items()}  # fmt: skip
    if any(row["peak"] for row in memory.values()):
        yield {**place, "kind": "memory", "arms": memory, "counted": "malloc"}


def _only(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in ("status", "reason", *names) if name in row}
