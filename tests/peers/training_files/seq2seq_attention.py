import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, x):
        return self.gru(self.embedding(x))


class AttnDecoder(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.Wa, self.Ua, self.Va = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, encoder_outputs, hidden, targets):
        outputs = []
        for i in range(targets.size(1)):
            embedded = self.embedding(targets[:, i]).unsqueeze(1)
            query = hidden.permute(1, 0, 2)
            scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(encoder_outputs))).squeeze(2).unsqueeze(1)
            context = torch.bmm(F.softmax(scores, dim=-1), encoder_outputs)
            output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
            outputs.append(self.out(output))
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1)


encoder, decoder = Encoder(30, 24), AttnDecoder(30, 24)
criterion = nn.NLLLoss()


def loss(source, target):
    outputs, hidden = encoder(source)
    log_probs = decoder(outputs, hidden, target)
    return criterion(log_probs.view(-1, log_probs.size(-1)), target.view(-1))


inputs = [(torch.randint(0, 30, (8, 7)), torch.randint(0, 30, (8, 6))) for _ in range(2)]
