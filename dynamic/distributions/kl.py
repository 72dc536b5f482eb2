"""How far one distribution is from another: a formula for each pair of families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamic.distributions import counts
from dynamic.distributions import families as of
from dynamic.distributions.distribution import Independent, sum_last
from dynamic.distributions.transforms import Transform, TransformedDistribution
from graphs import ops
from graphs.errors import GraphError, locate
from graphs.frontends.torch import functions, linalg

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Any]
_formulas: dict[tuple[type, type], Formula] = {}
log, lgamma, digamma = functions.log, functions.lgamma, functions.digamma


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Enter the function below as the formula of a pair of classes."""

    def enter(function: Formula) -> Formula:
        _formulas[type_p, type_q] = function
        return function

    return enter


def kl_divergence(p: Any, q: Any) -> Any:
    """How far q is from p: the mean over p of the logarithm of p / q. Raises GraphError where there is no formula."""
    for first in type(p).__mro__:
        for second in type(q).__mro__:
            if (first, second) in _formulas:
                return _formulas[first, second](p, q)
    kinds = f"{type(p).__name__} and {type(q).__name__}"
    raise GraphError(locate(f"kl_divergence: there is no formula for {kinds}; give two of the same kind"))


@register_kl(of.Normal, of.Normal)
def _of_normals(p: Any, q: Any) -> Any:
    share = (p.scale / q.scale) ** 2
    return 0.5 * (share + ((p.loc - q.loc) / q.scale) ** 2 - 1 - log(share))


@register_kl(counts.Bernoulli, counts.Bernoulli)
def _of_bernoullis(p: Any, q: Any) -> Any:
    return ops.binary_cross_entropy_with_logits(q.logits, p.probs, reduction="none") - p.entropy()


@register_kl(counts.Categorical, counts.Categorical)
@register_kl(counts.OneHotCategorical, counts.OneHotCategorical)
def _of_categoricals(p: Any, q: Any) -> Any:
    return functions.sum(p.probs * (p.logits - q.logits), -1)


@register_kl(of.Laplace, of.Laplace)
def _of_laplaces(p: Any, q: Any) -> Any:
    share, distance = p.scale / q.scale, functions.abs(p.loc - q.loc)
    return -log(share) + distance / q.scale + share * functions.exp(-distance / p.scale) - 1


@register_kl(of.Uniform, of.Uniform)
def _of_uniforms(p: Any, q: Any) -> Any:
    result = log((q.high - q.low) / (p.high - p.low))
    return functions.where((q.low > p.low) | (q.high < p.high), float("inf"), result)


@register_kl(of.Exponential, of.Exponential)
def _of_exponentials(p: Any, q: Any) -> Any:
    share = q.rate / p.rate
    return share - log(share) - 1


@register_kl(of.Gamma, of.Gamma)
def _of_gammas(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    return b * log(p.rate / q.rate) + lgamma(b) - lgamma(a) + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(of.Dirichlet, of.Dirichlet)
def _of_dirichlets(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1, True)
    inner = lgamma(b).sum(-1) - lgamma(a).sum(-1) + ((a - b) * (digamma(a) - digamma(total))).sum(-1)
    return lgamma(a.sum(-1)) - lgamma(b.sum(-1)) + inner


@register_kl(of.Beta, of.Beta)
def _of_betas(p: Any, q: Any) -> Any:
    return _of_dirichlets(p._shares(), q._shares())


@register_kl(counts.Poisson, counts.Poisson)
def _of_poissons(p: Any, q: Any) -> Any:
    return p.rate * (log(p.rate) - log(q.rate)) - (p.rate - q.rate)


@register_kl(counts.Geometric, counts.Geometric)
def _of_geometrics(p: Any, q: Any) -> Any:
    return -p.entropy() - functions.log1p(-q.probs) / p.probs - q.logits


@register_kl(counts.Binomial, counts.Binomial)
def _of_binomials(p: Any, q: Any) -> Any:
    inner = p.probs * (p.logits - q.logits) + functions.log1p(-p.probs) - functions.log1p(-q.probs)
    return functions.where(p.total_count > q.total_count, float("inf"), p.total_count * inner)


@register_kl(of.MultivariateNormal, of.MultivariateNormal)
def _of_vectors(p: Any, q: Any) -> Any:
    spread = (linalg.solve_triangular(*_together(q.scale_tril, p.scale_tril), upper=False) ** 2).sum((-1, -2))
    off = (q.loc - p.loc).unsqueeze(-1)
    distance = (linalg.solve_triangular(*_together(q.scale_tril, off), upper=False) ** 2).sum((-1, -2))
    return q._log_det() - p._log_det() + 0.5 * (spread + distance - p.event_shape[0])


def _together(factor: Any, right: Any) -> tuple[Any, Any]:
    batch = functions.broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    return factor.expand(*batch, *factor.shape[-2:]), right.expand(*batch, *right.shape[-2:])


@register_kl(Independent, Independent)
def _of_independents(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise GraphError(locate("kl_divergence: events of one number of axes are needed; make both Independent alike"))
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _of_transformed(p: Any, q: Any) -> Any:
    alike = len(p.transforms) == len(q.transforms) and p.event_shape == q.event_shape
    if not alike or not all(map(_is_same, p.transforms, q.transforms)):
        raise GraphError(locate("kl_divergence: both go through the same functions; give two of the same kind"))
    more = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_last(kl_divergence(p.base_dist, q.base_dist), more)


def _is_same(transform: Any, other: Any) -> bool:
    """Whether two functions are one: an object, or of one class without parameters of its own."""
    return transform is other or (type(transform) is type(other) and vars(transform).keys() == vars(Transform()).keys())
