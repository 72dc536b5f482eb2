"""`functional_call` under its older name."""

from dynamic.nn.parameter import functional_call

__all__ = ["functional_call"]
