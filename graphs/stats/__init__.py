"""Densities and distribution functions for both engines, with SciPy's names and parameters; loaded when it is used.

A module a distribution, as in `scipy.stats`: `norm.logpdf(x, loc, scale)`. Where an argument has no gradient, as the
shapes of a cumulative distribution, asking for it raises NotDifferentiableError.
"""

from graphs.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]
