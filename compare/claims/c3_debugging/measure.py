"""The measurement behind claim C3: every seeded fault, in each engine with its best tools."""

from __future__ import annotations

from compare import steps
from compare.claims.c3_debugging.catalogue import corpus
from compare.claims.c3_debugging.debugger import examine
from compare.claims.c3_debugging.dynamic_tools import DynamicTools
from compare.claims.c3_debugging.static_tools import StaticTools
from compare.records.debugging import Faults
from compare.records.job import Job


def measure(_job: Job) -> Faults:
    """The record of claim C3: for each fault and engine, what the scripted debugger met."""
    engines = (DynamicTools(), StaticTools())
    return Faults("C3", [examine(fault, tools) for fault in steps.each("examined", corpus()) for tools in engines])
