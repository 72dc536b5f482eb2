"""One network on three inputs, the triplet loss, hooks that watch, and a plateau that lowers the rate."""

import numpy as np

import dynamic as torch
from dynamic import nn, optim
from tests.programs import start

rng = np.random.default_rng(0)
net = start(nn.Sequential(nn.Linear(6, 12), nn.PReLU(), nn.BatchNorm1d(12), nn.Linear(12, 4)))
seen = []
handle = net[0].register_forward_hook(lambda module, args, output: seen.append(output.detach().abs().mean().item()))
optimizer = optim.SGD(net.parameters(), lr=0.5)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
criterion = nn.TripletMarginLoss(margin=2.0)
losses = []
for step in range(6):
    anchor, near, far = (torch.tensor((rng.standard_normal((10, 6)) + shift).astype(np.float32)) for shift in (0, 0, 1))
    loss = criterion(net(anchor), net(near), net(far))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step(loss.item())
    losses += [loss.item(), optimizer.param_groups[0]["lr"]]
    if step == 3:
        handle.remove()
losses += [*seen, float(len(seen))]
