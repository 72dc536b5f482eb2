"""The measurement behind claim C3: every seeded fault, in each engine with its best tools."""

from __future__ import annotations

from typing import Any

from compare.faults.catalogue import corpus
from compare.faults.debugger import examine
from compare.faults.dynamic_tools import DynamicTools
from compare.faults.static_tools import StaticTools


def measure() -> dict[str, Any]:
    """The record of claim C3: for each fault and engine, what the scripted debugger met."""
    engines = (DynamicTools(), StaticTools())
    return {
        "kind": "fault",
        "claim": "C3",
        "faults": [examine(fault, tools) for fault in corpus() for tools in engines],
    }
