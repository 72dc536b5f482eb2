"""Steps with a known fault and a known best remedy, for `graphduel compare FILE:STEP --inputs FILE:INPUTS --remedies`.

Each section names the fault and the remedy; `python -m tests.peers.remedies_table` measures whether it is found.
"""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.first, self.last = nn.Linear(8, width), nn.Linear(width, 1)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def calls_of(*rows):
    return [(torch.randn(n, 8), torch.randn(n, 1)) for n in rows]


# The batch size varies: its axis is marked dynamic.
batch_net = Net()
batch_size_inputs = calls_of(6, 12, 20, 16)


def batch_size(x, y):
    return nn.functional.mse_loss(batch_net(x), y)


# The length of a sequence varies: its axis is marked dynamic.
table = nn.Embedding(32, 8)
sequence_length_inputs = [(torch.randint(0, 32, (4, n)),) for n in (5, 9, 7, 12)]


def sequence_length(tokens):
    return torch.cumsum(table(tokens), 1).square().mean()


# A loop over time has as many turns as the sequence is long, so that no axis can be dynamic: it is padded, by its mask.
cell_in, cell_back = nn.Linear(3, 8), nn.Linear(8, 8)
masked_loop_inputs = [(torch.randn(4, n, 3), torch.arange(n) < torch.tensor([[n], [1], [n], [2]])) for n in (2, 4, 3)]


def masked_loop(x, mask):
    state = x.new_zeros(len(x), 8)
    for time in range(x.shape[1]):
        moved = torch.tanh(cell_in(x[:, time]) + cell_back(state))
        state = torch.where(mask[:, time, None], moved, state)
    return state.square().mean()


# The sizes of tensors inside a container vary: compiled with dynamic=True.
dict_net = Net()
dict_sizes_inputs = [({"x": x, "y": y},) for x, y in calls_of(6, 12, 20, 16)]


def dict_sizes(batch):
    return (nn.functional.mse_loss(dict_net(batch["x"]), batch["y"]) + batch["x"].std()).sqrt()


# A number among the arguments varies: it is given as a tensor.
number_net = Net()
varying_number_inputs = [(*calls_of(6)[0], scale) for scale in (0.1, 0.2, 0.3, 0.4)]


def varying_number(x, y, scale):
    return nn.functional.mse_loss(number_net(x) * scale, y)


# A module counts its calls, and its ops gain by being fused: the counter is a variable of the compiled code.
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.scale, self.shift = 2, nn.Parameter(torch.ones(256)), nn.Parameter(torch.zeros(256))

    def forward(self, x):
        self.calls += 1
        for _ in range(8):
            x = torch.relu(x * self.scale + self.shift)
        return x / self.calls


counting = Counting()
module_counter_inputs = [(torch.randn(256, 256),) for _ in range(5)]


def module_counter(x):
    return counting(x).square().mean()


# A schedule changes the rate of a compiled optimizer: the rate is a tensor.
weights = [nn.Parameter(torch.randn(32)) for _ in range(4)]
rate_optimizer = torch.optim.Adam(weights, lr=0.01)
schedule = torch.optim.lr_scheduler.LinearLR(rate_optimizer, total_iters=5)
scheduled_rate_inputs = [(torch.randn(4, 32),) for _ in range(5)]


def scheduled_rate(gradients):
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient
    rate_optimizer.step()
    schedule.step()


# A tensor becomes a number: capture_scalar_outputs keeps the graph whole.
item_net = Net()
scalar_result_inputs = calls_of(6, 6, 6)


def scalar_result(x, y):
    scale = item_net(x).abs().max().item()
    return nn.functional.mse_loss(item_net(x) / (1 + scale), y)


# A print breaks the graph: its line is taken out.
print_net = Net()
printed_loss_inputs = calls_of(6, 6, 6)


def printed_loss(x, y):
    loss = nn.functional.mse_loss(print_net(x), y)
    print("loss", loss)
    return (loss + 1).log()


# Python branches on a value: torch.where is shown, and nothing is claimed for it.
branch_net = Net()
value_branch_inputs = calls_of(6, 6, 6)


def value_branch(x, y):
    out = branch_net(x)
    if out.mean() > 0:
        out = out * 2
    else:
        out = out - 1
    return nn.functional.mse_loss(out, y)


# An optimizer and its backward pass break the step into pieces: the model and optimizer.step are compiled alone.
trained = Net()
optimizer = torch.optim.AdamW(trained.parameters(), lr=0.01)
optimizer_inside_inputs = calls_of(6, 6, 6)


def optimizer_inside(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(trained(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


# The backward pass inside breaks the graph: it is traced, or the model is compiled alone.
back_net = Net()
backward_inside_inputs = calls_of(6, 6, 6)


def backward_inside(x, y):
    loss = nn.functional.mse_loss(back_net(x), y)
    loss.backward()
    return loss.detach()


# The first call of many equal blocks is dear: one block is compiled, whose kernels take far longer than its entry.
class Block(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Deep(nn.Module):
    def __init__(self, depth, width=32):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


deep = Deep(12, 128)
dear_first_call_inputs = [(torch.randn(1024, 128),)]


def dear_first_call(x):
    return deep(x).square().mean()


# Hundreds of modules have guards that take longer than their kernels: guards are skipped once all is compiled.
many = nn.ModuleList(nn.Linear(1, 1) for _ in range(300))
dear_guards_inputs = [(torch.randn(1, 1),)]


def dear_guards(x):
    return sum(layer.weight for layer in many).square().sum() * x.sum()


# Activations are many times the parameters: blocks are checkpointed beside compile.
wide = Deep(3)
dear_memory_inputs = [(torch.randn(8192, 32),)]


def dear_memory(x):
    return wide(x).square().mean()
