"""What tests an op: sample calls of every op in the registry, and gradients against finite differences."""

from graphs.testing.gradients import check_grads
from graphs.testing.sample import Sample
from graphs.testing.samples import samples

__all__ = ["Sample", "check_grads", "samples"]
