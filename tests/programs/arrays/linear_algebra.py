"""Losses through cholesky, eigh, inv, det, slogdet and norms, and products of every kind."""

import numpy.random as npr

import graphs as np
from dynamic import grad

rs = npr.RandomState(0)
X = rs.randn(20, 3)
v = rs.randn(3)


def loss(A):
    cov = np.dot(A, A.T) + 0.5 * np.eye(3)
    L = np.linalg.cholesky(cov)
    whitened = np.linalg.solve(L, X.T)
    values, vectors = np.linalg.eigh(cov)
    gaps = np.outer(v, v) - np.einsum("ij,kj->ik", A, np.linalg.inv(cov))
    return (
        0.5 * np.sum(whitened**2) / 20
        + np.linalg.slogdet(cov)[1]
        + np.sum(np.log(values) * np.dot(v, vectors) ** 2)
        + np.linalg.norm(gaps)
        + np.log(np.linalg.det(cov))
        + np.inner(v, np.dot(A, v)) * 0.1
        + np.trace(np.tensordot(A, A, axes=([1], [0])))
        + np.sum(np.tril(np.kron(A, np.eye(2)), -1)) * 0.01
        + np.std(A)
        + np.sum(np.sort(A.ravel())[-2:])
    )


A = rs.randn(3, 3)
losses = []
for _ in range(20):
    losses.append(loss(A))
    A = A - 0.02 * grad(loss)(A)
