"""Reference models: `model(x, edge_index, edge_attr=None, batch=None) -> logits [g, c]`."""

from graphxai_data.nn.bcos import BcosLinear as BcosLinear
from graphxai_data.nn.bcos import explanation_mode as explanation_mode
from graphxai_data.nn.bcos_gin import BcosGIN as BcosGIN
from graphxai_data.nn.bcos_gin import BcosGINE as BcosGINE
from graphxai_data.nn.gin import GIN as GIN
from graphxai_data.nn.gin import GINE as GINE
from graphxai_data.nn.gin import DeepSets as DeepSets
from graphxai_data.nn.gsat import GSAT as GSAT

__all__ = [
    "GIN",
    "GINE",
    "GSAT",
    "BcosGIN",
    "BcosGINE",
    "BcosLinear",
    "DeepSets",
    "explanation_mode",
]
