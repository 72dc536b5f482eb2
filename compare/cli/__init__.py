"""The command `graphduel`, a module for each of its commands."""

from compare.cli.command import main

__all__ = ["main"]
