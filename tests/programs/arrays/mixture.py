"""A mixture of Gaussians by gradients, its covariances as products of triangles."""

import numpy.random as npr

import graphs as np
import graphs.stats.multivariate_normal as mvn
from dynamic import grad
from graphs.special import logsumexp

rs = npr.RandomState(2)
data = np.vstack([rs.randn(30, 2) * 0.3 + centre for centre in ([1.0, 0.0], [-1.0, 0.5], [0.0, -1.5])])
params = {
    "log proportions": rs.randn(3) * 0.1,
    "means": rs.randn(3, 2),
    "triangles": np.zeros((3, 2, 2)) + np.eye(2),
}


def log_likelihood(params):
    shares = params["log proportions"] - logsumexp(params["log proportions"])
    parts = []
    for share, mean, root in zip(shares, params["means"], params["triangles"]):
        parts.append(share + mvn.logpdf(data, mean, np.dot(root.T, root)))
    return np.sum(logsumexp(np.vstack(parts), axis=0))


gradient = grad(log_likelihood)
losses = []
for _ in range(30):
    losses.append(-log_likelihood(params))
    found = gradient(params)
    params = {name: value + 0.004 * found[name] for name, value in params.items()}
