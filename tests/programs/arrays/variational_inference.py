"""Black-box variational inference: samples as a function of the parameters, and an entropy in closed form."""

import numpy.random as npr

import graphs as np
import graphs.stats.multivariate_normal as mvn
import graphs.stats.norm as norm
from dynamic import grad


def log_density(x):
    mu, log_sigma = x[:, 0], x[:, 1]
    return norm.logpdf(log_sigma, 0, 1.35) + norm.logpdf(mu, 0, np.exp(log_sigma))


def objective(params, noise):
    mean, log_std = params[:2], params[2:]
    samples = noise * np.exp(log_std) + mean
    entropy = 0.5 * 2 * (1.0 + np.log(2 * np.pi)) + np.sum(log_std)
    return -(entropy + np.mean(log_density(samples)))


rs = npr.RandomState(0)
params = np.concatenate([-1.0 * np.ones(2), -2.0 * np.ones(2)])
gradient = grad(objective)
losses = []
for _ in range(50):
    noise = rs.randn(100, 2)
    losses.append(objective(params, noise))
    params = params - 0.1 * gradient(params, noise)
losses.append(mvn.entropy(params[:2], np.diag(np.exp(2 * params[2:]))))
