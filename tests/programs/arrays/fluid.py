"""A fluid: the first velocities are fitted so that smoke ends up as a given picture."""

import graphs as np
from dynamic import value_and_grad

N = 10


def project(vx, vy):
    p = np.zeros(vx.shape)
    div = -0.5 * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0) + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1))
    for _ in range(6):
        p = (div + np.roll(p, 1, axis=0) + np.roll(p, -1, axis=0) + np.roll(p, 1, axis=1) + np.roll(p, -1, axis=1)) / 4
    vx = vx - 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0))
    return vx, vy - 0.5 * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1))


def advect(f, vx, vy):
    xs, ys = np.meshgrid(np.arange(N), np.arange(N))
    center_xs, center_ys = (xs - vx).ravel(), (ys - vy).ravel()
    left, top = np.floor(center_xs).astype(int), np.floor(center_ys).astype(int)
    rw, bw = center_xs - left, center_ys - top
    left, top = np.mod(left, N), np.mod(top, N)
    right, bottom = np.mod(left + 1, N), np.mod(top + 1, N)
    flat = (1 - rw) * ((1 - bw) * f[left, top] + bw * f[left, bottom])
    flat = flat + rw * ((1 - bw) * f[right, top] + bw * f[right, bottom])
    return np.reshape(flat, (N, N))


def simulate(vx, vy, smoke):
    for _ in range(4):
        moved = advect(vx, vx, vy), advect(vy, vx, vy)
        vx, vy = project(*moved)
        smoke = advect(smoke, vx, vy)
    return smoke


smoke = np.zeros((N, N))
smoke[2:5, 3:6] = 1.0
target = np.roll(smoke, 2, axis=0)


def distance(params):
    vx, vy = np.reshape(params[: N * N], (N, N)), np.reshape(params[N * N :], (N, N))
    return np.mean((target - simulate(vx, vy, smoke)) ** 2)


params = 0.05 * np.sin(np.arange(2.0 * N * N))
step = value_and_grad(distance)
losses = []
for _ in range(8):
    value, gradient = step(params)
    losses.append(value)
    params = params - 5.0 * gradient
