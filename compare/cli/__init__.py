"""The command `graphduel`: `command` has the group and most commands, the other modules the larger commands."""

from compare.cli.command import main

__all__ = ["main"]
