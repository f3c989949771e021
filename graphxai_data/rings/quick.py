"""The quick check: no training, NumPy only, a few seconds; part of every build."""

import numpy as np
from threadpoolctl import threadpool_limits

from graphxai_data.rings import embeddings, probes
from graphxai_data.rings.complementarity import mode_complementarities
from graphxai_data.rings.modes import Graphs, in_mode
from graphxai_data.rings.sample import Sample
from graphxai_data.rings.verdict import CONTROL, Measurement, inconclusive, judge
from graphxai_data.seeds import rng_for

# Complete and randomly connected graphs, and other features, wait for the full check.
MODES = ("original", "empty_graph", "random_graph", "empty_features", "shuffled_features")
# With fewer groups of a class, a probe that finds nothing proves nothing.
FEWEST_OF_A_CLASS = 50
_COMPLEMENTARITY_GRAPHS = 300


def quick_check(sample: Sample, seed: int = 0) -> Measurement:
    """Measure both principles by linear probes on untrained embeddings."""
    if reason := unmeasurable(sample):
        return inconclusive("quick", reason, graphs=len(sample))
    # Where another process is busy, threads of BLAS that wait for each other cost twenty times.
    with threadpool_limits(1, "blas"):
        return _measured(sample, seed)


def _measured(sample: Sample, seed: int) -> Measurement:
    graphs = sample.graphs
    vectors = {
        mode: embeddings.embed(in_mode(graphs, mode, rng_for(seed, f"rings/quick/{mode}")), seed)
        for mode in MODES
    }
    vectors |= {
        "pooled_features": embeddings.pooled_features(graphs),
        "degree_histogram": embeddings.degree_histogram(graphs),
        "sizes": embeddings.sizes(graphs),
    }
    scores = probes.scores(vectors, sample.label, sample.group, seed)
    shuffled = sample.label[rng_for(seed, "rings/quick/labels").permutation(len(sample))]
    control = probes.scores({CONTROL: vectors["original"]}, shuffled, sample.group, seed)
    principles, comparisons = judge(scores | control)
    return Measurement(
        "quick",
        principles,
        graphs=len(sample),
        scores={mode: tuple(round(v, 6) for v in vs) for mode, vs in (scores | control).items()},
        comparisons=tuple(c._asdict() for c in comparisons),
        complementarity=mean_complementarity(graphs),
    )


def unmeasurable(sample: Sample) -> str | None:
    """Why nothing can be said about these graphs, whatever is tried."""
    classes = np.unique(sample.label)
    if len(classes) < 2:
        return "there is one class only: nothing can be told apart"
    groups = [len(np.unique(sample.group[sample.label == c])) for c in classes]
    if min(groups) < FEWEST_OF_A_CLASS:
        return (
            f"class {classes[int(np.argmin(groups))]} has {min(groups)} graphs (or groups), fewer "
            f"than {FEWEST_OF_A_CLASS}: too few to tell"
        )
    x = sample.graphs.x
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        return "a feature is not a finite number"
    return None


def mean_complementarity(graphs: Graphs) -> float | None:
    """Mean mode complementarity of the first graphs; None where none has any."""
    count = min(_COMPLEMENTARITY_GRAPHS, len(graphs.sizes))
    ptr = graphs.node_ptr[: count + 1]
    inside = graphs.edges[0] < ptr[-1]
    x = graphs.x[: ptr[-1]]
    if x.ndim == 1:
        x = np.eye(int(x.max(initial=0)) + 1)[x.astype(np.int64)]
    values = mode_complementarities(x, graphs.edges[:, inside], ptr)
    defined = values[np.isfinite(values)]
    return round(float(defined.mean()), 6) if len(defined) else None
