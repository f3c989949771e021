"""Which atoms are wrong in B-cos maps of molecules, and why (docs/wrong-maps.md).

Needs the trainings of `python -m benchmarks.maps confirm --family molecules`, and trains nothing.
Prints every number of the page, and writes its figures: `python -m benchmarks.wrong_maps
[--root data] [--out runs/maps] [--figures docs]`.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from scipy.stats import spearmanr

from benchmarks.maps import CONFIRM_SEEDS
from graphxai_data import BatchLoader, GraphXAIDataset, explain, load_model
from graphxai_data.drawing.graphs import NO_DATE, STYLE, Drawing, draw_graph
from graphxai_data.drawing.sketch import sketch
from graphxai_data.evaluation.parts import recipe_of, union_of
from graphxai_data.evaluation.truth import Truth
from graphxai_data.generators.dihalo_molecules import HALOGENS
from graphxai_data.graphs.union import Graphs
from graphxai_data.metrics import Bools, Floats, Ints, count_true, top_rows
from graphxai_data.nn import Ensemble
from graphxai_data.training.train import run_folder

DATASETS, BUILDS, POSITIONS = ("dihalo", "dihalo-decoy"), (2, 3), ("ortho", "meta", "para")
SEEDS = tuple(CONFIRM_SEEDS)
OFF_THE_PATH = "ring carbons off the shortest path"
INSIDE = ("halogen", "C with halogen", "attachment C", "other ring C")
OUTSIDE = ("ring H", "first atom outside", "halogen elsewhere", "other outside")
# Circles around top atoms, and how far pictures reach from the centre of the ring, in bonds.
RIGHT, WRONG = {"edgecolors": "#111111"}, {"edgecolors": "#8e24aa", "linestyles": "--"}
WINDOW = np.array([-2.75, 2.75])


class Case:
    """Test graphs of one build, the maps of its five trainings and that of their ensemble.

    Attributes:
        models: by name, "seed 300" to "seed 304" and "ensemble".
        maps: by the same names, [N] contributions to the predicted logit.
    """

    def __init__(self, root: str, out: Path, name: str, build: int) -> None:
        self.name, self.build = name, build
        dataset = GraphXAIDataset(root, name, build)
        self.part = dataset[dataset.get_idx_split()["test"]]
        place = out / f"build-{build}" / "default"
        members = [load_model(run_folder(place, "bcos-gine", name, s), dataset) for s in SEEDS]
        self.models = {f"seed {s}": m.eval() for s, m in zip(SEEDS, members, strict=True)}
        self.singles = tuple(self.models)
        self.models["ensemble"] = Ensemble(members).eval()
        self.maps = {}
        for model_name, model in self.models.items():
            maps = [explain(model, batch) for batch in BatchLoader(self.part, 128)]
            # All models are right on all graphs, so all maps are of the same logits.
            assert np.array_equal(torch.cat([m.target for m in maps]), self.truth.label)
            self.maps[model_name] = torch.cat([m.node_scores for m in maps]).double().numpy()

    @cached_property
    def truth(self) -> Truth:
        """Labels and rationales."""
        return Truth.of(self.part)

    @cached_property
    def whole(self) -> Any:
        """All graphs as one batch."""
        return next(iter(BatchLoader(self.part, len(self.part))))

    @cached_property
    def graphs(self) -> Graphs:
        """All graphs as arrays; `x` is the element of each atom, as a number."""
        return union_of(self.part, self.whole)

    @property
    def mask(self) -> Bools:
        """[N] the rationale."""
        return self.truth.node_mask

    @property
    def ptr(self) -> Ints:
        """[g+1] where the atoms of each graph begin and end."""
        return self.truth.node_ptr

    @property
    def position(self) -> Ints:
        """[g] 0 for ortho, 1 for meta, 2 for para."""
        return self.truth.label % len(POSITIONS)

    @property
    def class_names(self) -> list[str]:
        """Names such as "Cl ortho"."""
        return recipe_of(self.part).generator_object.class_names()

    @cached_property
    def elements(self) -> Any:
        """[N] the element of each atom."""
        return np.array(recipe_of(self.part).generator_object.params.atoms)[self.graphs.x]

    @cached_property
    def roles(self) -> dict[str, Bools]:
        """[N] the atoms of each kind; every atom has one."""
        mask, hydrogen = self.mask, self.elements == "H"
        halogen = mask & (self.elements != "C")
        ring = mask & ~halogen
        chosen = {"halogen": halogen, "C with halogen": ring & self.next_to(halogen)}
        chosen["attachment C"] = ring & ~chosen["C with halogen"] & self.next_to(~mask & ~hydrogen)
        chosen["other ring C"] = ring & ~chosen["C with halogen"] & ~chosen["attachment C"]
        chosen["ring H"] = hydrogen & self.next_to(ring)
        chosen["first atom outside"] = ~mask & ~hydrogen & self.next_to(ring)
        rest = ~mask & ~chosen["ring H"] & ~chosen["first atom outside"]
        chosen["halogen elsewhere"] = rest & np.isin(self.elements, HALOGENS)
        chosen["other outside"] = rest & ~chosen["halogen elsewhere"]
        assert (np.sum(list(chosen.values()), axis=0) == 1).all()
        return chosen

    @cached_property
    def off_the_path(self) -> Bools:
        """[N] atoms of the rationale that are not on the first shortest path between halogens."""
        return self.mask & (self.truth.sufficient.bits & 1 == 0)

    @cached_property
    def distance(self) -> Ints:
        """[N] bonds to the nearest halogen of the rationale."""
        distance = np.where(self.roles["halogen"], 0, 99)
        while True:
            reached = distance.copy()
            np.minimum.at(reached, self.graphs.edges[0], distance[self.graphs.edges[1]] + 1)
            if np.array_equal(reached, distance):
                return distance
            distance = reached

    def next_to(self, atoms: Bools) -> Bools:
        """Return [N] which atoms have a neighbour among the given ones."""
        source, target = self.graphs.edges
        found = np.zeros(len(atoms), bool)
        found[source[atoms[target]]] = True
        return found

    def per_graph(self, values: Floats | Bools) -> Floats:
        """Return [g] sums over the nodes of each graph."""
        return np.add.reduceat(values.astype(float), self.ptr[:-1])

    def shares(self, scores: Floats) -> Floats:
        """Return [N] contributions, in units of the positive evidence of their graph."""
        return scores / self.per_graph(scores.clip(min=0))[self.graphs.owner]

    def top(self, scores: Floats) -> Bools:
        """Return [N] the atoms with the highest scores, as many as the rationale has."""
        return top_rows(scores, self.ptr, count_true(self.mask, self.ptr))

    def jaccard(self, scores: Floats) -> Floats:
        """Return [g] Jaccard@k of scores [N]."""
        return self.truth.rationales.jaccard(scores)

    def mean_of(self, members: Iterable[str]) -> Floats:
        """Return [N] the map of the ensemble of some members."""
        return np.mean([self.maps[member] for member in members], axis=0)

    def unchanged(self, model: str, atoms: Bools) -> Bools:
        """Return [g] whether the predicted class is the same if these atoms have no features."""
        batch = self.whole
        x = batch.x * torch.from_numpy(~atoms)[:, None]
        with torch.no_grad():
            logits = self.models[model](x, batch.edge_index, batch.edge_attr, batch.batch)
        return logits.argmax(dim=1).numpy() == self.truth.label


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data", help="folder of builds")
    parser.add_argument("--out", type=Path, default=Path("runs/maps"), help="folder of runs")
    parser.add_argument("--figures", type=Path, default=Path("docs"), help="folder of figures")
    arguments = parser.parse_args()
    place = arguments.root, arguments.out
    cases = [Case(*place, name, build) for name, build in product(DATASETS, BUILDS)]
    print_scores(cases)
    for name in DATASETS:
        chosen = [case for case in cases if case.name == name]
        print(f"\n# {name}, both builds")
        print_wrong_atoms(chosen)
        print_sizes(chosen)
        print_evidence(chosen)
        print_without(chosen)
    for case in cases:
        print(f"\n# {case.name}, build {case.build}: members and ensembles")
        print_members(case)
    agreed = [np.all([c.top(c.maps[member]) for member in c.singles], axis=0) for c in cases]
    outside = sum((atoms & ~case.mask).sum() for atoms, case in zip(agreed, cases, strict=True))
    print(f"\natoms that all members have at the top, all builds: {np.concatenate(agreed).sum()}, "
          f"{outside} of them outside\n")  # fmt: skip
    write_figures(cases, arguments.figures)


def print_scores(cases: Sequence[Case]) -> None:
    """Print both Jaccards and the evidence inside of every model, and how they go together."""
    print("# Jaccard@k, jaccard_sufficient, share of the positive evidence in the rationale")
    print("| model | " + " | ".join(f"{c.name}, build {c.build}" for c in cases) + " |")
    for model in cases[0].maps:
        cells = [" / ".join(f"{value:.3f}" for value in _scores(case, model)) for case in cases]
        print(f"| {model} | " + " | ".join(cells) + " |")
    means = [np.mean([_scores(case, model) for model in case.singles], axis=0) for case in cases]
    print(
        "| mean of singles | " + " | ".join(" / ".join(f"{v:.3f}" for v in m) for m in means) + " |"
    )
    table = np.array([[_scores(case, model) for model in case.singles] for case in cases])
    for one, other in combinations(range(len(cases)), 2):
        rank = spearmanr(table[one, :, 0], table[other, :, 0]).statistic
        print(f"Spearman of Jaccard@k over seeds, columns {one + 1} and {other + 1}: {rank:.2f}")
    for case, rows in zip(cases, table, strict=True):
        rank = spearmanr(rows[:, 0], rows[:, 1]).statistic
        print(f"{case.name} {case.build}: Spearman of the two Jaccards over seeds {rank:.2f}")


def _scores(case: Case, model: str) -> tuple[float, float, float]:
    scores = case.maps[model]
    inside = case.per_graph(case.shares(scores).clip(min=0) * case.mask)
    return (
        case.jaccard(scores).mean(),
        case.truth.sufficient.jaccard(scores).mean(),
        inside.mean(),
    )


def print_wrong_atoms(cases: Sequence[Case]) -> None:
    """Print which kinds of atoms come in and go out, by model and position."""
    print(
        f"| model | position | Jaccard@k | wrong graphs | atoms | {' | '.join(OUTSIDE + INSIDE)} |"
    )
    bonds = []
    for model in cases[0].maps:
        for place, position in enumerate(POSITIONS):
            counts = dict.fromkeys(OUTSIDE + INSIDE, 0)
            jaccard = []
            for case in cases:
                top = case.top(case.maps[model])
                here = (case.position == place)[case.graphs.owner]
                jaccard.append(case.jaccard(case.maps[model])[case.position == place])
                bonds.append(case.distance[here & top & ~case.mask])
                for kind, atoms in case.roles.items():
                    counts[kind] += int((atoms & here & (top != case.mask)).sum())
            atoms = sum(counts[kind] for kind in INSIDE)
            cells = [f"{100 * n / max(atoms, 1):.0f}" for n in counts.values()]
            values = np.concatenate(jaccard)
            print(f"| {model} | {position} | {values.mean():.3f} | {(values < 1).mean():.0%} | "
                  f"{atoms} | {' | '.join(cells)} |")  # fmt: skip
        out = np.concatenate([
            case.elements[case.roles["halogen"] & ~case.top(case.maps[model])] for case in cases
        ])  # fmt: skip
        found = {str(e): int((out == e).sum()) for e in np.unique(out)}
        classes = np.concatenate([_per_class(case, case.maps[model]) for case in cases])
        print(f"  {model}: halogens that go out: {found}; Jaccard@k of classes "
              f"{classes.min():.2f} to {classes.max():.2f}")  # fmt: skip
    every = np.concatenate(bonds)
    print(f"atoms that come in: {len(every)}, bonds to the nearest halogen of the rationale: "
          + ", ".join(f"{d}: {(every == d).sum()}" for d in np.unique(every)))  # fmt: skip
    carbons = [
        (case.roles["C with halogen"] & ~case.top(scores)).sum()
        for case in cases
        for scores in case.maps.values()
    ]
    print(f"carbons with a halogen that go out, in all models: {sum(carbons)}")
    for case, model in product(cases, cases[0].maps):
        far = case.top(case.maps[model]) & ~case.mask & (case.distance > 3)
        owners = case.truth.label[case.graphs.owner[far]]
        for label, count in zip(*np.unique(owners, return_counts=True), strict=True):
            print(f"  more than three bonds: build {case.build}, {model}, "
                  f"{case.class_names[label]}: {count}")  # fmt: skip


def _per_class(case: Case, scores: Floats) -> Floats:
    jaccard, label = case.jaccard(scores), case.truth.label
    return np.array([jaccard[label == one].mean() for one in np.unique(label)])


def print_sizes(cases: Sequence[Case]) -> None:
    """Print how large the contributions of wrong atoms are, in units of the positive evidence."""
    print("| model | come in | go out | gap | rationale | other outside: median, 99 % |")
    for model in cases[0].maps:
        come, go, gaps, inside, rest = [], [], [], [], []
        for case in cases:
            scores = case.shares(case.maps[model])
            top = case.top(case.maps[model])
            come.append(scores[top & ~case.mask])
            go.append(scores[~top & case.mask])
            # As many atoms come in as go out, so this is the gap between their means.
            gap = case.per_graph(scores * (top & ~case.mask) - scores * (~top & case.mask))
            wrong = case.per_graph(top & ~case.mask)
            gaps.append(gap[wrong > 0] / wrong[wrong > 0])
            inside.append(scores[case.mask])
            rest.append(np.abs(scores[case.roles["other outside"]]))
        medians = [
            f"{np.median(np.concatenate(v)):.1%}" if sum(map(len, v)) else "–"
            for v in (come, go, gaps, inside)
        ]
        others = np.percentile(np.concatenate(rest), (50, 99))
        print(f"| {model} | {' | '.join(medians)} | {others[0]:.2%}, {others[1]:.1%} |")


def print_evidence(cases: Sequence[Case]) -> None:
    """Print the share of positive evidence by kind and position, and that of far carbons."""
    kinds = INSIDE + OUTSIDE
    print(f"| model | position | {' | '.join(kinds)} | off the shortest paths |")
    for model in cases[0].maps:
        for place, position in enumerate(POSITIONS):
            rows = []
            for case in cases:
                shares = case.shares(case.maps[model]).clip(min=0)
                far = case.mask & (case.truth.sufficient.bits == 0)
                sets = [*(case.roles[kind] for kind in kinds), far]
                chosen = case.position == place
                rows.append([case.per_graph(shares * atoms)[chosen].mean() for atoms in sets])
            cells = [f"{value:.0%}" for value in np.mean(rows, axis=0)]
            print(f"| {model} | {position} | {' | '.join(cells)} |")


def print_without(cases: Sequence[Case]) -> None:
    """Print how many predictions stay the same if some atoms lose their features."""
    print("| without the features of | position | singles: mean (lowest) | ensemble |")
    for what in (OFF_THE_PATH, "ring H", "first atom outside", "halogen elsewhere", "halogen"):
        same = {
            (case, model): case.unchanged(model, case.roles.get(what, case.off_the_path))
            for case in cases
            for model in case.models
        }
        for place, position in enumerate(POSITIONS):
            values = {key: v[key[0].position == place].mean() for key, v in same.items()}
            singles = [v for (_, model), v in values.items() if model != "ensemble"]
            ensembles = [v for (_, model), v in values.items() if model == "ensemble"]
            print(f"| {what} | {position} | {np.mean(singles):.2f} ({min(singles):.2f}) | "
                  f"{np.mean(ensembles):.2f} |")  # fmt: skip


def print_members(case: Case) -> None:
    """Print how much the errors of members overlap, and what ensembles of some of them score."""
    top = np.stack([case.top(case.maps[member]) for member in case.singles])
    wrong = top != case.mask
    times = np.bincount(wrong.sum(axis=0), minlength=len(SEEDS) + 1)[1:]
    one_only, several = times[0] / times.sum(), times[2:].sum() / times.sum()
    print(f"atoms that are wrong in 1 to 5 members: {times.tolist()}, in one only {one_only:.0%}, "
          f"in three or more {several:.1%}")  # fmt: skip
    overlaps = []
    for one, other in combinations(wrong, 2):
        both = (case.per_graph(one) > 0) & (case.per_graph(other) > 0)
        union = case.per_graph(one | other).clip(min=1)
        overlaps.append((case.per_graph(one & other) / union)[both])
    shared = np.concatenate(overlaps)
    print(f"overlap of the wrong atoms of two members, where both are wrong: {shared.mean():.2f} "
          f"({len(shared)} pairs of maps)")  # fmt: skip
    single = {member: case.jaccard(case.maps[member]).mean() for member in case.singles}
    for size in range(2, len(SEEDS) + 1):
        joined = {
            members: case.jaccard(case.mean_of(members)).mean()
            for members in combinations(case.singles, size)
        }
        values = list(joined.values())
        better = sum(value > max(single[m] for m in members) for members, value in joined.items())
        print(f"ensembles of {size}: mean {np.mean(values):.3f}, lowest {min(values):.3f} "
              f"({', '.join(min(joined, key=joined.__getitem__))}); better than their best member: "
              f"{better} of {len(values)}")  # fmt: skip
    gap = np.abs(case.mean_of(case.singles) - case.maps["ensemble"]).max()
    print(f"votes of the members' top atoms: {case.jaccard(top.mean(axis=0)).mean():.3f}; the map "
          f"of the ensemble differs from the mean of maps by {gap:.1g} at most")  # fmt: skip
    core = top.all(axis=0)
    print(f"atoms that all members have at the top: {core[case.mask].mean():.1%} of the rationale; "
          f"{(core & ~case.mask).sum()} of these {core.sum()} are outside")  # fmt: skip
    shares = case.shares(case.maps["ensemble"])
    weakest = np.minimum.reduceat(np.where(case.mask, shares, np.inf), case.ptr[:-1])
    strongest = np.maximum.reduceat(np.where(case.mask, -np.inf, shares), case.ptr[:-1])
    margin = weakest - strongest
    print(f"ensemble, weakest atom inside minus strongest outside: lowest {margin.min():.1%}, "
          f"median {np.median(margin):.1%} of the positive evidence")  # fmt: skip


def write_figures(cases: Sequence[Case], folder: Path) -> None:
    """Write a row of pictures for the smallest molecule of each kind of error."""
    decoys = next(case for case in cases if case.name == "dihalo-decoy")
    plan = [
        ("far-carbons", cases[0], "seed 304", 0),
        ("halogens", cases[0], "seed 301", 2),
        ("ensemble", decoys, "ensemble", 1),
    ]
    for name, case, model, place in plan:
        jaccard = case.jaccard(case.maps[model])
        here = case.position == place
        worst = here & (jaccard == jaccard[here].min())
        graph = int(np.flatnonzero(worst)[np.diff(case.ptr)[worst].argmin()])
        path = folder / f"wrong-maps-{name}.svg"
        single = [case.jaccard(case.maps[member])[graph] for member in case.singles]
        worst_one, best_one = (case.singles[int(f(single))] for f in (np.argmin, np.argmax))
        shown = {
            worst_one: f"worst single ({worst_one})",
            best_one: f"best single ({best_one})",
            "ensemble": "ensemble of five",
        }
        with mpl.rc_context(STYLE):
            figure(case, graph, shown).savefig(path, metadata=NO_DATE["svg"])
        label = case.class_names[case.truth.label[graph]]
        print(f"{path.name}: {case.name}, build {case.build}, graph "
              f"{int(case.part[graph].graph_id)}, {label}, {np.diff(case.ptr)[graph]} atoms; "
              f"Jaccard@k of members {', '.join(f'{value:.2f}' for value in single)}")  # fmt: skip


def figure(case: Case, graph: int, models: Mapping[str, str]) -> Drawing:
    """Return the ring of a rationale, and maps of it: shares of evidence, top atoms circled.

    Args:
        case: the build.
        graph: the number of the graph.
        models: what is written above the map of each model.
    """
    data, nodes = case.part[graph], slice(*case.ptr[graph : graph + 2])
    mask = case.mask[nodes]
    layout = sketch(
        data.edge_index.numpy(), data.num_nodes, data.get("smiles"), data.smiles_atom.numpy()
    )
    points = layout.places * [1.0, -1.0]
    ring = mask & ~case.roles["halogen"][nodes]
    centre = points[ring].mean(axis=0)
    bond = float(np.linalg.norm(points[ring] - centre, axis=1).mean())
    drawn = Drawing(figsize=(2.6 * (len(models) + 1), 2.9), layout="constrained")
    first, *others = drawn.subplots(1, len(models) + 1)
    draw_graph(first, data, np.zeros(len(mask)), mask)
    first.set_title(f"rationale\n{mask.sum()} atoms", pad=10)
    for axes, (model, title) in zip(others, models.items(), strict=True):
        shares = case.shares(case.maps[model])[nodes]
        top = case.top(case.maps[model])[nodes]
        draw_graph(axes, data, shares, None)
        for atoms, style in ((top & mask, RIGHT), (top & ~mask, WRONG)):
            axes.scatter(*points[atoms].T, s=150, facecolors="none", linewidths=1.6, **style)
        _write_shares(axes, points - centre, ring, shares, centre, bond)
        axes.set_title(f"{title}\n{(top & mask).sum()} of {mask.sum()} right", pad=10)
    for axes in (first, *others):
        axes.set(xlim=centre[0] + WINDOW * bond, ylim=centre[1] + WINDOW * bond)
    return drawn


def _write_shares(
    axes: Axes, offsets: Floats, ring: Bools, shares: Floats, centre: Floats, bond: float
) -> None:
    """Write shares of at least 1.5 %: of ring atoms towards its centre, of others away from it."""
    length = np.linalg.norm(offsets, axis=1)
    for node in np.flatnonzero(np.abs(shares) >= 0.015):
        away = -0.42 if ring[node] else 0.5
        place = centre + offsets[node] * (1 + away * bond / length[node])
        if np.abs(place - centre).max() < WINDOW[1] * bond:
            text = f"{100 * shares[node]:.0f}".replace("-", "−")
            axes.text(*place, text, ha="center", va="center", fontsize=7, color="#333333", zorder=4)


if __name__ == "__main__":
    main()
