import torch
from torch import nn


class RNNModel(nn.Module):
    def __init__(self, ntoken=50, ninp=16, nhid=32, nlayers=2):
        super().__init__()
        self.nhid, self.nlayers = nhid, nlayers
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.encoder(tokens), hidden)
        return self.decoder(output), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))


model = RNNModel()
criterion = nn.CrossEntropyLoss()


def loss(tokens, targets):
    output, _ = model(tokens, model.init_hidden(tokens.size(1)))
    return criterion(output.view(-1, 50), targets.view(-1))


inputs = [(torch.randint(0, 50, (12, 8)), torch.randint(0, 50, (12, 8))) for _ in range(2)]
