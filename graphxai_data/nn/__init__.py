"""Reference models: `model(x, edge_index, edge_attr=None, batch=None) -> logits [g, c]`."""

from graphxai_data.nn.bcos import BcosLinear, explanation_mode
from graphxai_data.nn.bcos_gin import BcosGIN, BcosGINE
from graphxai_data.nn.ensemble import Ensemble
from graphxai_data.nn.gin import GIN, GINE, DeepSets
from graphxai_data.nn.gsat import GSAT

__all__ = [
    "GIN",
    "GINE",
    "GSAT",
    "BcosGIN",
    "BcosGINE",
    "BcosLinear",
    "DeepSets",
    "Ensemble",
    "explanation_mode",
]
