"""Training steps on vectors, tables, graphs and scenes, and steps whose gradient is part of the loss."""

from __future__ import annotations

from typing import Any

from benchmarks.training import Step, Torch, labels, normal, parameters, training


def autoencoder(torch: Torch) -> Step:
    """784 numbers through 1024, 256 and 1024, 64 examples: Adam with decay on two million parameters."""
    nn: Any = torch.nn
    model = nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU(),
        nn.Linear(1024, 784), nn.Sigmoid(),
    )  # fmt: skip
    x = torch.sigmoid(normal(torch, 64, 784))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    return training(torch, optimizer, lambda: nn.functional.mse_loss(model(x), x))


def word2vec(torch: Torch) -> Step:
    """Skip-gram with 5 negatives for each of 512 words, of 5,000 with 100 numbers each."""
    nn: Any = torch.nn
    log_sigmoid = nn.functional.logsigmoid
    centres, contexts = nn.Embedding(5000, 100), nn.Embedding(5000, 100)
    centre, context = labels(torch, 5000, 512), labels(torch, 5000, 512, seed=2)
    negatives = labels(torch, 5000, 512, 5, seed=3)

    def loss() -> Any:
        own = centres(centre)
        right = log_sigmoid((own * contexts(context)).sum(1))
        wrong = log_sigmoid(-torch.bmm(contexts(negatives), own.unsqueeze(2)).squeeze(2)).sum(1)
        return -(right + wrong).mean()

    return training(torch, torch.optim.Adam(parameters(centres, contexts), lr=1e-3), loss)


def recommender(torch: Torch) -> Step:
    """A perceptron on the codes of a user and a thing, 1,024 pairs."""
    nn: Any = torch.nn
    users, things = nn.Embedding(3000, 32), nn.Embedding(2000, 32)
    judge = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    user, thing = labels(torch, 3000, 1024), labels(torch, 2000, 1024)
    liked = (normal(torch, 1024) > 0).float()

    def loss() -> Any:
        scores = judge(torch.cat([users(user), things(thing)], -1)).squeeze(-1)
        return nn.functional.binary_cross_entropy_with_logits(scores, liked)

    return training(torch, torch.optim.Adam(parameters(users, things, judge), lr=1e-3), loss)


def graph_convolution(torch: Torch) -> Step:
    """Two layers of means over neighbours, by `index_add`: 2,000 nodes, 10,000 edges, 64 numbers a node."""
    nn: Any = torch.nn
    nodes, edges = 2000, 10000
    source, target = labels(torch, nodes, edges), labels(torch, nodes, edges, seed=5)
    degree = torch.zeros(nodes).index_add(0, target, torch.ones(edges)).clamp(min=1)[:, None]
    first, second, drop = nn.Linear(64, 64), nn.Linear(64, 7), nn.Dropout(0.5)
    x, y = normal(torch, nodes, 64), labels(torch, 7, nodes)

    def spread(states: Any) -> Any:
        return torch.zeros(nodes, states.shape[1]).index_add(0, target, states[source]) / degree + states

    def loss() -> Any:
        states = drop(torch.relu(spread(first(x))))
        return nn.functional.nll_loss(nn.functional.log_softmax(spread(second(states)), 1), y)

    return training(torch, torch.optim.Adam(parameters(first, second), lr=0.01, weight_decay=5e-4), loss)


def graph_attention(torch: Torch) -> Step:
    """A softmax over each node's edges by `scatter_add`, 4 heads of 16: 1,000 nodes, 6,000 edges."""
    nn: Any = torch.nn
    nodes, edges, heads, size = 1000, 6000, 4, 16
    source, target = labels(torch, nodes, edges), labels(torch, nodes, edges, seed=5)
    inner, out = nn.Linear(32, heads * size, bias=False), nn.Linear(heads * size, 7)
    left, right = nn.Parameter(normal(torch, 1, heads, size)), nn.Parameter(normal(torch, 1, heads, size, seed=2))
    x, y = normal(torch, nodes, 32), labels(torch, 7, nodes)

    def loss() -> Any:
        states = inner(x).view(nodes, heads, size)
        scores = (states * left).sum(-1)[source] + (states * right).sum(-1)[target]
        scores = nn.functional.leaky_relu(scores, 0.2).exp()
        totals = torch.zeros(nodes, heads).scatter_add(0, target[:, None].expand(edges, heads), scores)
        weights = scores / (totals[target] + 1e-16)
        mixed = torch.zeros(nodes, heads, size).index_add(0, target, states[source] * weights[..., None])
        return nn.functional.cross_entropy(out(nn.functional.elu(mixed.reshape(nodes, heads * size))), y)

    return training(torch, torch.optim.Adam([*parameters(inner, out), left, right], lr=5e-3), loss)


def flow(torch: Torch) -> Step:
    """RealNVP: six coupling layers on 256 points of 8 numbers, the likelihood by `torch.distributions`."""
    nn: Any = torch.nn
    nets = nn.ModuleList(
        [nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 16)) for _ in range(6)]
    )
    masks = [torch.tensor([float((i + layer) % 2) for i in range(8)]) for layer in range(6)]
    prior, x = torch.distributions.Normal(torch.zeros(8), torch.ones(8)), normal(torch, 256, 8)

    def loss() -> Any:
        z, volume = x, torch.zeros(256)
        for net, mask in zip(nets, masks, strict=True):
            scale, shift = net(z * mask).chunk(2, 1)
            scale = torch.tanh(scale) * (1 - mask)
            z = z * torch.exp(scale) + shift * (1 - mask)
            volume = volume + scale.sum(1)
        return -(prior.log_prob(z).sum(1) + volume).mean()

    return training(torch, torch.optim.Adam(nets.parameters(), lr=1e-3), loss)


def policy(torch: Torch) -> Step:
    """A step of PPO on 256 states of 8 numbers, by `torch.distributions`, gradients clipped."""
    nn: Any = torch.nn

    def net(out: int) -> Any:
        return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, out))

    actor, critic, categorical = net(4), net(1), torch.distributions.Categorical
    states, actions = normal(torch, 256, 8), labels(torch, 4, 256)
    advantages, returns = normal(torch, 256, seed=2), normal(torch, 256, seed=3)
    before, params = categorical(logits=actor(states)).log_prob(actions).detach(), parameters(actor, critic)

    def loss() -> Any:
        choice = categorical(logits=actor(states))
        ratio = torch.exp(choice.log_prob(actions) - before)
        gain = torch.min(ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages).mean()
        off = (critic(states).squeeze(-1) - returns).pow(2).mean()
        return 0.5 * off - gain - 0.01 * choice.entropy().mean()

    return training(torch, torch.optim.Adam(params, lr=3e-4), loss, 0.5, params)


def radiance(torch: Torch) -> Step:
    """NeRF: 64 rays of 32 points, places as sines, a perceptron of 128, and light summed along each ray."""
    nn: Any = torch.nn
    model = nn.Sequential(nn.Linear(39, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4))
    origins, directions, goal = (normal(torch, 64, 3, seed=seed) for seed in (0, 1, 2))

    def loss() -> Any:
        depths = torch.linspace(2, 6, 32).expand(64, 32)
        points = origins[:, None] + directions[:, None] * depths[..., None]
        waves = [wave(points * 2.0**i) for i in range(6) for wave in (torch.sin, torch.cos)]
        raw = model(torch.cat([points, *waves], -1).reshape(-1, 39)).reshape(64, 32, 4)
        apart = torch.cat([depths[:, 1:] - depths[:, :-1], torch.full((64, 1), 1e10)], -1)
        opaque = 1 - torch.exp(-torch.relu(raw[..., 3]) * apart)
        reaching = torch.cumprod(torch.cat([torch.ones(64, 1), 1 - opaque + 1e-10], -1), -1)[:, :-1]
        return torch.mean(((opaque * reaching)[..., None] * torch.sigmoid(raw[..., :3])).sum(1).sub(goal) ** 2)

    return training(torch, torch.optim.Adam(model.parameters(), lr=5e-4), loss)


def penalty(torch: Torch) -> Step:
    """WGAN-GP: a critic whose gradient has a norm near 1, and a generator, 64 examples of 784 numbers."""
    nn: Any = torch.nn
    drawer = nn.Sequential(
        nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 256), nn.BatchNorm1d(256), nn.LeakyReLU(0.2),
        nn.Linear(256, 784), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1)
    )
    settings = {"lr": 2e-4, "betas": (0.5, 0.999)}
    of_drawer = torch.optim.Adam(drawer.parameters(), **settings)
    of_critic = torch.optim.Adam(critic.parameters(), **settings)
    real, noise = normal(torch, 64, 784), normal(torch, 64, 64)

    def step() -> Any:
        of_critic.zero_grad()
        drawn, share = drawer(noise).detach(), torch.rand(64, 1)
        between = (share * real + (1 - share) * drawn).requires_grad_(True)
        scores = critic(between)
        (slope,) = torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True)
        loss = critic(drawn).mean() - critic(real).mean() + 10 * ((slope.norm(2, dim=1) - 1) ** 2).mean()
        loss.backward()
        of_critic.step()
        of_drawer.zero_grad()
        (-critic(drawer(noise)).mean()).backward()
        of_drawer.step()
        return loss

    return step


def meta_learning(torch: Torch) -> Step:
    """MAML of second order: two inner steps on each of 4 sines, a perceptron of 40."""
    nn: Any = torch.nn
    functional = nn.functional
    weights = [nn.Parameter(0.1 * normal(torch, *shape)) for shape in ((40, 1), (40,), (40, 40), (40,), (1, 40), (1,))]
    x = normal(torch, 10, 1)

    def off(task: int, values: list[Any]) -> Any:
        inner = functional.relu(functional.linear(x, *values[:2]))
        inner = functional.relu(functional.linear(inner, *values[2:4]))
        return functional.mse_loss(functional.linear(inner, *values[4:]), torch.sin(x + task))

    def loss() -> Any:
        total = 0
        for task in range(4):
            fast = weights
            for _ in range(2):
                slopes = torch.autograd.grad(off(task, fast), fast, create_graph=True)
                fast = [weight - 0.01 * slope for weight, slope in zip(fast, slopes, strict=True)]
            total = total + off(task, fast)
        return total / 4

    return training(torch, torch.optim.Adam(weights, lr=1e-3), loss)


STEPS = (
    autoencoder, word2vec, recommender, graph_convolution, graph_attention, flow, policy, radiance, penalty,
    meta_learning,
)  # fmt: skip
"""The steps of this file."""
