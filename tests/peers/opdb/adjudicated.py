"""Where an answer differs from PyTorch's on purpose: a kind a row, each with its reason."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.peers.opdb.comparing import ANSWERED, GRADIENT, VALUE, Verdict

KINDS_AT_MOST = 26


class Kind(NamedTuple):
    """A difference that stays: its reason, the ops and the verdicts it is about, and what the line must contain."""

    reason: str
    ops: str
    verdicts: tuple[str, ...]
    line: str = ""

    def covers(self, verdict: Verdict) -> bool:
        """Whether a verdict is of this kind."""
        return (
            verdict.name in self.verdicts
            and re.fullmatch(self.ops, verdict.call.op) is not None
            and re.search(self.line, str(verdict)) is not None
        )


KINDS = (
    Kind("PyTorch has no kernel for the dtype; ours has", ".*", (ANSWERED,), "not implemented for|not supported for"),
    Kind(
        "the signs of singular vectors and eigenvectors are free",
        r"svd|qr|linalg\.(svd|qr|eigh|eig)",
        (VALUE, GRADIENT),
    ),
)


def kind_of(verdict: Verdict) -> Kind | None:
    """The kind that a verdict is of, if any."""
    return next((kind for kind in KINDS if kind.covers(verdict)), None)
