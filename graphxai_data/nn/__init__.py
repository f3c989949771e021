"""Reference models: `model(x, edge_index, edge_attr=None, batch=None) -> logits [g, c]`."""

from graphxai_data.nn.gin import GIN as GIN
from graphxai_data.nn.gin import GINE as GINE
from graphxai_data.nn.gin import DeepSets as DeepSets

__all__ = ["GIN", "GINE", "DeepSets"]
