"""The parity gate as a run keeps it: what its records let through to be timed, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from compare.records.cells import Parity, ParityArm
from compare.records.job import Job
from compare.records.record import Arm, Cell, Record, of
from compare.run.runner import Wanted

REFERENCE = "dynamic"


def admitted(records: Iterable[Record], cell: Cell, job: Job) -> Wanted | None:
    """A job of a cell with the arms that the gate lets through, of those it asks for, if it lets any."""
    gates = [record for record in of(records, Parity) if record.cell == cell]
    arms, refused = sorted_out(gates[-1].arms if gates else {})
    wanted = tuple(arm for arm in arms if not job.arms or arm in job.arms)
    return (replace(job, arms=wanted), refused) if wanted else None


def sorted_out(rows: Mapping[str, ParityArm]) -> tuple[tuple[str, ...], dict[str, Arm]]:
    """The arms of a parity record that may be measured, and a row for each that may not, with the reason.

    None may be when the dynamic engine, the reference of every ratio, is not right itself.
    """
    if REFERENCE not in rows or rows[REFERENCE].status != "ok":
        return (), {}
    refused = {arm: Arm(row.status, row.reason) for arm, row in rows.items() if row.status != "ok"}
    return tuple(arm for arm in rows if arm not in refused), refused


def rows_with(status: str, parity: Iterable[Parity]) -> list[str]:
    """One line for each arm with that status in some parity records."""
    return [
        f"{record.cell}, {arm}: {row.reason}"
        for record in parity
        for arm, row in record.arms.items()
        if row.status == status
    ]
