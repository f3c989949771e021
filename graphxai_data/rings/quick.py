"""The quick check: linear probes without training, in NumPy, a few seconds; part of every build."""

import numpy as np
from threadpoolctl import threadpool_limits

from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.union import Graphs
from graphxai_data.rings import embeddings, probes
from graphxai_data.rings.complementarity import mode_complementarities
from graphxai_data.rings.modes import in_mode
from graphxai_data.rings.sample import Sample
from graphxai_data.rings.verdict import CONTROL, Depth, Measurement, inconclusive, judge
from graphxai_data.seeds import Draws, rng_for

# The other modes are left to the full check.
MODES = ("original", "empty_graph", "random_graph", "empty_features", "shuffled_features")
# With fewer groups per class, a probe that finds nothing proves nothing.
MIN_GROUPS_PER_CLASS = 50
_COMPLEMENTARITY_GRAPHS = 300
_SHUFFLES = 10


def quick_check(sample: Sample, seed: int = 0) -> Measurement:
    """Measure both principles by linear probes on untrained embeddings."""
    if reason := unmeasurable(sample):
        return inconclusive("quick", reason, len(sample))
    # On a busy machine, BLAS threads that wait for each other take twenty times as long.
    with threadpool_limits(1, "blas"):
        return _measure(sample, seed)


def _measure(sample: Sample, seed: int) -> Measurement:
    graphs = sample.graphs
    shuffled = [
        shuffled_labels(sample, rng_for(seed, "rings/quick/labels", i)) for i in range(_SHUFFLES)
    ]
    scores: dict[str, list[float]] = {}
    for mode in MODES:
        changed = in_mode(graphs, mode, rng_for(seed, f"rings/quick/{mode}"))
        labels = np.stack([sample.label, *(shuffled if mode == "original" else [])])
        accuracy = probes.scores(embeddings.embed(changed, seed), labels, sample.group, seed)
        scores[mode] = accuracy[0].tolist()
        if mode == "original":
            control = accuracy[1:].mean(axis=1).tolist()
    for name in embeddings.SHORTCUTS:
        vectors = embeddings.shortcut(name, graphs, seed)
        scores[name] = probes.scores(vectors, sample.label[None], sample.group, seed)[0].tolist()
    scores[CONTROL] = control
    # Shuffled labels vary as whole datasets do by chance; folds of one dataset vary less.
    return measurement("quick", sample, scores, least_learnt=4 * float(np.std(control)))


def measurement(
    depth: Depth, sample: Sample, scores: dict[str, list[float]], least_learnt: float = 0.0
) -> Measurement:
    """Return the measurement for these scores, with the complementarity of the graphs."""
    principles, comparisons = judge(scores, least_learnt=least_learnt)
    return Measurement(
        depth,
        principles,
        graphs=len(sample),
        scores={mode: tuple(round(v, 6) for v in vs) for mode, vs in scores.items()},
        comparisons=tuple(c._asdict() for c in comparisons),
        complementarity=_mean_complementarity(sample.graphs),
    )


def shuffled_labels(sample: Sample, draws: Draws) -> Ints:
    """Return labels shuffled between groups of the same size, and within each group."""
    by_group = np.lexsort([draws.words(len(sample)), sample.group])
    _, first, count = np.unique(sample.group[by_group], return_index=True, return_counts=True)
    label = np.empty_like(sample.label)
    for size in np.unique(count).tolist():
        places = by_group[first[count == size][:, None] + np.arange(size)]
        label[places] = sample.label[places[draws.permutation(len(places))]]
    return label


def unmeasurable(sample: Sample) -> str | None:
    """Return why no check can say anything about these graphs, or None."""
    if sample.node_level:
        return "nodes have classes, graphs have none: the check is about classes of graphs"
    classes = np.unique(sample.label)
    if len(classes) < 2:
        return "there is one class only: nothing can be told apart"
    groups = [len(np.unique(sample.group[sample.label == c])) for c in classes]
    if min(groups) < MIN_GROUPS_PER_CLASS:
        return (
            f"class {classes[int(np.argmin(groups))]} has {min(groups)} graphs (or groups), fewer "
            f"than {MIN_GROUPS_PER_CLASS}: too few to tell"
        )
    for rows in (sample.graphs.x, sample.graphs.edge_attr):
        if rows is not None and rows.dtype.kind == "f" and not np.isfinite(rows).all():
            return "a feature is not a finite number"
    return None


def _mean_complementarity(graphs: Graphs) -> float | None:
    """Return the mean mode complementarity of the first graphs; None if none has one."""
    first = graphs.take(np.arange(min(_COMPLEMENTARITY_GRAPHS, len(graphs.sizes))))
    values = mode_complementarities(embeddings.dense_rows(first.x), first.edges, first.node_ptr)
    defined = values[np.isfinite(values)]
    return round(float(defined.mean()), 6) if len(defined) else None
