"""Whose records these are: of our own engines, or of a framework."""

from __future__ import annotations

from collections.abc import Iterable

from compare.engines import Engine
from compare.engines.framework import PADDED
from compare.records.record import Record
from compare.records.runs import Failure


def inside(records: Iterable[Record]) -> list[Record]:
    """The records of our own engines, and every job that left no result: the report lists them all."""
    return [record for record in records if record.arm is None or isinstance(record, Failure)]


def of_framework(records: Iterable[Record], framework: Engine) -> list[Record]:
    """Those of a framework, whose eager arm is the base, as `dynamic` is among our own."""
    arms = {*framework.arms}
    return [record for record in records if record.arm is not None and record.arm.removesuffix(PADDED) in arms]
