"""Seeded faults: small models, each healthy and with one line wrong, and a scripted debugger that looks for it."""

from compare.faults.base import Fault, Program
from compare.faults.catalogue import corpus

__all__ = ["Fault", "Program", "corpus"]
