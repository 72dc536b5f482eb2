"""`functional_call` under its older name."""

from dynamic.nn.structure import functional_call

__all__ = ["functional_call"]
