import torch
from torch import nn


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, n_factors=20):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, n_factors)
        self.item_factors = nn.Embedding(n_items, n_factors)
        self.user_bias, self.item_bias = nn.Embedding(n_users, 1), nn.Embedding(n_items, 1)

    def forward(self, user, item):
        pred = self.user_bias(user) + self.item_bias(item)
        return (pred + (self.user_factors(user) * self.item_factors(item)).sum(1, keepdim=True)).squeeze()


model = MatrixFactorization(50, 80)
loss_func = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, weight_decay=1e-4, nesterov=True)


def train(user, item, rating):
    optimizer.zero_grad()
    loss = loss_func(model(user, item), rating)
    loss.backward()
    optimizer.step()
    return loss


inputs = [(torch.randint(0, 50, (64,)), torch.randint(0, 80, (64,)), torch.rand(64)) for _ in range(2)]
