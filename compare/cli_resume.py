"""What `--resume` goes on with: the settings of the run itself, which options may repeat and not contradict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

Options = Mapping[str, Sequence[str]]
"""For each setting the parameters that choose it."""


def settings(ctx: click.Context, directory: Path, asked: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """What was asked for, with the settings that the run in a directory began with in their place.

    Raises UsageError for an option that asks for another one.
    """
    from compare import journal

    earlier = journal.settings(directory)
    for name in (name for name in options if name in earlier):
        given = any(ctx.get_parameter_source(one) is ParameterSource.COMMANDLINE for one in options[name])
        if given and earlier[name] != asked[name]:
            raise click.UsageError(
                f"the run in {directory} has {name} {_plain(earlier[name])}, and {_plain(asked[name])} was asked for; "
                "leave that option out to go on with it, or choose another --out"
            )
    return {**asked, **{name: earlier[name] for name in options if name in earlier}}


def _plain(value: Any) -> str:
    return "none" if value is None else str(value)
