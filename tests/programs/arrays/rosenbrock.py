"""The valley of Rosenbrock by Newton's method with a Hessian, after some steps downhill."""

import graphs as np
from dynamic import grad, hessian


def rosenbrock(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


gradient, curvature = grad(rosenbrock), hessian(rosenbrock)
x = np.array([-1.2, 1.0])
losses = []
for _ in range(5):
    losses.append(rosenbrock(x))
    x = x - 0.001 * gradient(x)
for _ in range(7):
    losses.append(rosenbrock(x))
    x = x - np.linalg.solve(curvature(x), gradient(x))
losses.append(np.linalg.norm(x - 1))
