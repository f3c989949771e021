"""The options of all models: their names, defaults and bounds, and what they mean."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from graphxai_data.errors import InputError, finite_number
from graphxai_data.files.toml import Between, Checked

Width = Annotated[int, Between(1, 2**20)]
Depth = Annotated[int, Between(1, 20)]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(Checked):
    """The options that all models have; the first four may be given by position.

    Attributes:
        in_features: width of node features.
        classes: number of logits; 1 for a model that predicts a number.
        hidden: width of node states.
        layers: number of updates.
        edge_features: width of edge features; 0 for a model that does not use them.
        update_layers: layers in each update.
        norm: "batch" for batch normalisation before every ReLU, or "none".
        dropout: share of units dropped in training: of states after every update, or in GSAT's
            classifier.
        level: "graph" for one row of logits per graph, "node" for one per node.
    """

    in_features: Width = field(kw_only=False)
    classes: Width = field(kw_only=False)
    hidden: Annotated[int, Between(1, 2**16)] = field(default=64, kw_only=False)
    layers: Annotated[int, Between(1, 100)] = field(default=3, kw_only=False)
    edge_features: Annotated[int, Between(0, 2**20)] = 0
    update_layers: Depth = 2
    norm: Literal["batch", "none"] = "none"
    dropout: Annotated[float, Between(0, 0.99)] = 0.0
    level: Literal["graph", "node"] = "graph"


@dataclass(frozen=True)
class EdgeSize(Checked):
    """The first options of models that need edge features; as a last base, it decides the order."""

    in_features: Width
    edge_features: Width


@dataclass(frozen=True, kw_only=True)
class GINConfig(NetworkConfig):
    """The options of `GIN` and `DeepSets`.

    Attributes:
        readout_layers: layers of the readout Θ.
    """

    readout_layers: Depth = 3


@dataclass(frozen=True, kw_only=True)
class GINEConfig(GINConfig, EdgeSize):
    """The options of `GINE`: those of `GIN`, with edge_features in second place."""

    edge_features: Width = field(kw_only=False)


@dataclass(frozen=True, kw_only=True)
class BcosGINConfig(GINConfig):
    """The options of `BcosGIN`.

    Attributes:
        norm: "rms" for `RMSNorm` after every B-cos layer but the last, or "none".
        b: alignment pressure B.
        max_out: candidates for each unit of a B-cos layer.
        eps: ε, fixed: a node's own state counts 1 + ε times (the paper's ε is 0). Cosines see
            degrees only as the angle between a state and the sum of its neighbours' states. Where
            degrees matter, 1 + ε should be of their order.
        logit_bias: fixed. A negative one is a threshold that the evidence for a class has to pass.
            In a number it is the part that no input accounts for.
        combine: what enters an update: the "sum" of a node's own state and its messages, as in the
            paper, or "cat", both side by side. With "cat" a degree is an angle, whatever ε is.
        gains: multiply the output of every B-cos layer but the last by a constant that `calibrate`
            sets, so that its root mean square is 1 on the first batch. Without it, outputs of deep
            models with a high B are too small for a float.
    """

    norm: Literal["rms", "none"] = "none"  # type: ignore[assignment]
    b: Annotated[float, Between(1)] = 2.0
    max_out: Annotated[int, Between(1, 1024)] = 1
    eps: Annotated[float, Between(0)] = 0.0
    logit_bias: Annotated[float, Between(-math.inf)] = 0.0
    combine: Literal["sum", "cat"] = "sum"
    gains: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gains and self.norm != "none":
            raise InputError(
                f'gains: expected false with norm="{self.norm}", which scales every layer; got true'
            )


@dataclass(frozen=True, kw_only=True)
class BcosGINEConfig(BcosGINConfig, EdgeSize):
    """The options of `BcosGINE`: those of `BcosGIN`, with edge_features in second place.

    Attributes:
        edges: "additive" for messages h_j + W e_ji, "multiplicative" for h_j · (1 + W e_ji).
    """

    edge_features: Width = field(kw_only=False)
    edges: Literal["additive", "multiplicative"] = "additive"


@dataclass(frozen=True, kw_only=True)
class GSATConfig(NetworkConfig):
    """The options of `GSAT`. Edge features make its backbone a `GINE`, otherwise it is a `GIN`.

    Attributes:
        own_encoder: attention is computed by a network of its own. Batch normalisation needs that:
            the statistics of states with and without attention differ.
        prior: r; attention is drawn towards 1 − r, as in the paper's tables.
        information: λ, the weight of the information loss.
        temperature: of the noise in attention, at the beginning and at the end of training.
    """

    layers: Annotated[int, Between(1, 100)] = field(default=4, kw_only=False)
    dropout: Annotated[float, Between(0, 0.99)] = 0.3
    own_encoder: bool = False
    prior: Annotated[float, Between(0, 1)] = 0.7
    information: Annotated[float, Between(0)] = 1.0
    temperature: tuple[float, float] = (1.0, 0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.temperature, Sequence) or len(self.temperature) != 2:
            raise InputError(f"temperature: expected two numbers, got {self.temperature!r}")
        for value in self.temperature:
            finite_number("temperature", value, 1e-3, 1e3)
