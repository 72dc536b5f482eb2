"""Losses as modules: each stores the options of one function of `nn.functional`."""

from __future__ import annotations

import functools
from typing import Any

from dynamic.nn import functional as F
from dynamic.nn.simple import Simple, signature_of, simple_module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(Simple):
    """Base of losses, also of user-defined ones: it stores `reduction`, which says how losses are combined."""

    options: dict[str, Any] = {"size_average": None, "reduce": None, "reduction": "mean"}  # noqa: RUF012  (read alone)
    __signature__ = signature_of(options)
    reduction: str

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        older = [vars(self).get(name) for name in ("size_average", "reduce")]
        self.reduction = F.common.reduction_of(self.reduction, *older)


class _WeightedLoss(_Loss):
    """Base of losses with a weight for each class, which is a buffer."""

    options = {"weight": None, **_Loss.options}  # noqa: RUF012  (read alone)
    __signature__ = signature_of(options)


_loss = functools.partial(simple_module, base=_Loss)
_weighted = functools.partial(simple_module, base=_WeightedLoss)

MSELoss = _loss("MSELoss", F.mse_loss, "size_average reduce reduction")
L1Loss = _loss("L1Loss", F.l1_loss, "size_average reduce reduction")
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss, "size_average reduce reduction beta")
HuberLoss = _loss("HuberLoss", F.huber_loss, "reduction delta")
CrossEntropyLoss = _weighted(
    "CrossEntropyLoss", F.cross_entropy, "weight size_average ignore_index reduce reduction label_smoothing"
)
NLLLoss = _weighted("NLLLoss", F.nll_loss, "weight size_average ignore_index reduce reduction")
BCELoss = _weighted("BCELoss", F.binary_cross_entropy, "weight size_average reduce reduction")
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, "weight size_average reduce reduction pos_weight"
)
KLDivLoss = _loss("KLDivLoss", F.kl_div, "size_average reduce reduction log_target")
PoissonNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss, "log_input full size_average eps reduce reduction")
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss, "full eps reduction")
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss, "margin size_average reduce reduction")
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss, "margin size_average reduce reduction")
SoftMarginLoss = _loss("SoftMarginLoss", F.soft_margin_loss, "size_average reduce reduction")
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss, "margin size_average reduce reduction")
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss, "margin p eps swap size_average reduce reduction")
CTCLoss = _loss("CTCLoss", F.ctc_loss, "blank reduction zero_infinity")
MultiMarginLoss = _weighted("MultiMarginLoss", F.multi_margin_loss, "p margin weight size_average reduce reduction")
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", F.multilabel_margin_loss, "size_average reduce reduction")
MultiLabelSoftMarginLoss = _weighted(
    "MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, "weight size_average reduce reduction"
)
TripletMarginWithDistanceLoss = _loss(
    "TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss, "distance_function margin swap reduction"
)
