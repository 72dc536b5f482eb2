"""The schema of a results file, version 1: what each kind of line holds. Times are in seconds, sizes in bytes.

A line is one JSON object with `schema`, `kind` and the fields below. A field may be added without a new version;
a line of a kind that is not here is left alone. What a worker measured also has the `seed` of its orders, the
`environment` of the worker, and `startup`: from its start until it and both engines were loaded. `host` is the same for
all that was measured on one host (`compare.records.machines.label`).
"""

from compare.records.schema.kinds import KINDS
from compare.records.schema.violation import violation

__all__ = ["KINDS", "VERSION", "violation"]

VERSION = 1
