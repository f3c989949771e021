"""Pairs of causes: the bound on arbitrary rankings, both halves, interventions, bad input."""

import json
import shutil
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from graphxai_data import BA2Motif, GraphXAIDataset, Pair, build, evaluate
from graphxai_data.cli import main
from graphxai_data.errors import InputError
from graphxai_data.evaluation.interventions import Interventions
from graphxai_data.evaluation.pair_study import compare_pair
from graphxai_data.metrics import jaccard_at_k
from graphxai_data.rings.floors import Floors, pair_bound
from graphxai_data.training.train import train


@given(st.data(), st.integers(1, 6), st.integers(1, 6), st.integers(0, 8))
@settings(deadline=None, max_examples=200)
def test_no_ranking_has_a_mean_above_the_bound(data: st.DataObject, a: int, b: int, n: int) -> None:
    cause = np.array([1] * a + [2] * b + [0] * n, np.uint8)
    cause = cause[data.draw(st.permutations(range(len(cause))))]
    scores = data.draw(st.lists(st.integers(0, 5), min_size=len(cause), max_size=len(cause)))
    # A graph of the two causes alone has nothing else to rank, but the bound holds there too.
    mean = np.mean([jaccard_at_k(scores, cause == c) for c in (1, 2)])
    bound = pair_bound(cause, np.array([0, len(cause)]))
    assert mean <= bound + 1e-12
    assert bound == max(a, b) / (a + b)


@pytest.mark.parametrize(("a", "b", "n"), [(2, 2, 1), (1, 3, 1), (3, 2, 1), (1, 1, 3), (1, 4, 0)])
def test_the_best_of_all_rankings_reaches_the_bound(a: int, b: int, n: int) -> None:
    cause = np.array([1] * a + [2] * b + [0] * n, np.uint8)
    best = max(
        np.mean([jaccard_at_k(ranking, cause == c) for c in (1, 2)])
        for ranking in permutations(range(len(cause)))
    )
    assert best == pytest.approx(pair_bound(cause, np.array([0, len(cause)])))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


@pytest.fixture(scope="module")
def pair(root: Path) -> Pair:
    return Pair.load(root, "ba2motif-pair", graphs=400)


def test_halves_are_the_same_graphs_with_other_labels_and_masks(pair: Pair) -> None:
    for key in ("x", "edge_index", "split", "cause", "group"):
        assert torch.equal(getattr(pair.a._data, key), getattr(pair.b._data, key)), key
    assert not torch.equal(pair.a._data.y, pair.b._data.y)
    assert not (pair.a._data.node_mask & pair.b._data.node_mask).any()
    assert pair.both is not None
    assert torch.equal(pair.both._data.cause_y[:, 0], pair.both._data.cause_y[:, 1])
    assert torch.equal(pair.both._data.split, pair.a._data.split)


def test_floors_without_labels_stay_below_the_bound_and_all_of_them_on_both(pair: Pair) -> None:
    assert pair.both is not None
    for dataset in (pair.a, pair.b, pair.both):
        floors = Floors.load(dataset.folder)
        assert floors is not None
        assert floors.bound == 0.5
        for name, floor in floors.rows.items():
            if dataset is pair.both or not floor.labels:
                assert floor.pair_mean is not None
                assert floor.pair_mean <= 0.5 + 1e-9, name
            else:  # ranks the graphs of the other half in another way
                assert floor.pair_mean is None


def test_a_table_has_both_causes_and_the_bound(pair: Pair) -> None:
    table = evaluate(pair, ["degree", "wl-log-odds-2", "random", "oracle"])
    assert (table.bound == 0.5).all()
    assert (table.both_jaccard[["degree", "wl-log-odds-2", "random"]] <= 0.5 + 1e-9).all()
    assert table.jaccard["oracle"] == table.both_jaccard["oracle"] == 1
    assert table.other["oracle"] == table.both_other["oracle"] == 0
    # A rule that is blind to the model has the same scores in both halves.
    assert table.other["degree"] == pytest.approx(table.jaccard["degree"])
    floors = Floors.load(pair.a.folder)
    assert floors is not None
    assert table.jaccard["degree"] == pytest.approx(floors.rows["degree"].pair_mean, abs=1e-6)
    assert table.own_a["wl-log-odds-2"] == pytest.approx(
        floors.rows["wl-log-odds-2"].jaccard, abs=1e-6
    )


def test_functions_do_not_see_the_causes(pair: Pair) -> None:
    seen: set[str] = set()

    def mine(data: object) -> torch.Tensor:
        seen.update(data.keys())  # type: ignore[attr-defined]
        return data.x[:, 0] + torch.arange(len(data.x))  # type: ignore[attr-defined]

    evaluate(pair, {"mine": mine})
    assert not seen & {"cause", "cause_y", "node_mask", "edge_mask", "split", "group"}


def test_interventions_change_one_cause_and_measure_models(pair: Pair, root: Path) -> None:
    part = pair.a[pair.a.get_idx_split()["test"]]
    drawn = Interventions.of(pair.a, part)
    old, own, other = part._data.cause_y[part.indices()], drawn.own._data, drawn.other._data
    assert (own.cause_y[:, 0] != old[:, 0]).all()
    assert torch.equal(own.cause_y[:, 1], old[:, 1])
    assert (other.cause_y[:, 1] != old[:, 1]).all()
    assert torch.equal(other.cause_y[:, 0], old[:, 0])
    assert torch.equal(other.y, part.y)

    class Cheat(torch.nn.Module):
        """Predicts the class of one cause from the edges of its House, told by colour."""

        def __init__(self, colour: int) -> None:
            super().__init__()
            self.colour = colour

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor,
                    batch_size: int) -> torch.Tensor:  # fmt: skip
            red = x[:, self.colour].bool()
            adjacency = torch.zeros(len(x), len(x))
            inside = red[edge_index[0]] & red[edge_index[1]]
            adjacency[edge_index[0][inside], edge_index[1][inside]] = 1
            triangles = torch.diagonal(adjacency @ adjacency @ adjacency)
            count = torch.zeros(batch_size).index_add(0, batch, triangles)
            return torch.stack([count, torch.full_like(count, 1.0)], dim=1)

    colours = {tuple(row.tolist()) for row in part[0].x[part[0].cause == 1]}
    assert len(colours) == 1
    colour_a = int(torch.tensor(colours.pop()).argmax())
    shares = drawn.measure(Cheat(colour_a))
    assert shares["moves"] > 0.8
    assert shares["stays"] == 1
    blind = drawn.measure(_Constant())
    assert (blind["moves"], blind["stays"], blind["agrees"]) == (0, 1, 0)


class _Constant(torch.nn.Module):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor,
                batch_size: int) -> torch.Tensor:  # fmt: skip
        return torch.zeros(batch_size, 2)


def test_comparisons_are_resumed_and_printed(pair: Pair, root: Path, tmp_path: Path) -> None:
    arguments = (pair, ("gin",), ("saliency", "degree"), (0,), tmp_path / "runs")
    first = compare_pair(*arguments, changes={"epochs": 1})
    saved = tmp_path / "runs/gin-ba2motif-pair-a/seed-0/pair.json"
    content = json.loads(saved.read_text())
    rows = content["splits"]["test"]
    assert set(rows) == {"saliency", "model"}
    # What is saved is not measured again.
    rows["saliency"]["own"] = 0.125
    saved.write_text(json.dumps(content))
    again = compare_pair(*arguments, changes={"epochs": 1})
    own = {row["half"]: row["own"] for row in again.rows if row["explainer"] == "saliency"}
    assert own["a"] == 0.125
    assert first.bounds == {"a": 0.5, "both": 0.5}
    summary = {row["explainer"]: row for row in again.summary()}
    assert summary["saliency"]["jaccard"] == pytest.approx((0.125 + own["b"]) / 2)
    assert summary["degree"]["both_jaccard"] <= 0.5
    assert {"moves", "stays", "agrees", "follows", "accuracy"} <= first.models[0].keys()
    result = CliRunner().invoke(
        main,
        ["evaluate", "ba2motif-pair", "--model", "gin", "--explainer", "saliency", "--explainer",
         "wl-log-odds-2", "--seeds", "0", "--set", "epochs=1", "--root", str(root), "--out",
         str(tmp_path / "runs")],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "bound of the mean on -both for what looks at no model: 0.500" in result.stdout
    assert "wl-log-odds-2 *" in result.stdout
    assert "stays with the other" in result.stdout


def test_a_model_of_the_wrong_half_is_refused(pair: Pair, tmp_path: Path) -> None:
    train(pair.a, "gin", out=tmp_path, changes={"epochs": 1})
    folder = tmp_path / "gin-ba2motif-pair-a/seed-0"
    with pytest.raises(InputError, match="ba2motif-pair-b"):
        evaluate(pair, ["saliency"], (folder, folder))


def test_bad_pairs_are_one_clear_line(pair: Pair, root: Path, tmp_path: Path) -> None:
    other_seed = GraphXAIDataset(root, "ba2motif-pair-b", 1, graphs=400)
    with pytest.raises(InputError, match=r"differ in their seed \(0 and 1\); build both from"):
        Pair(pair.a, other_seed)
    fewer = GraphXAIDataset(tmp_path, "ba2motif-pair-b", graphs=200)
    with pytest.raises(InputError, match=r"differ in their number of graphs \(400 and 200\)"):
        Pair(pair.a, fewer)
    with pytest.raises(InputError, match="expected the build of cause b, got 'ba2motif-pair-a'"):
        Pair(pair.a, pair.a)
    with pytest.raises(InputError, match="'ba2motif' is no half of a pair"):
        Pair(BA2Motif(tmp_path, graphs=40), pair.b)
    with pytest.raises(InputError, match="different selections of graphs"):
        Pair(pair.a[:10], pair.b[10:20])
    with pytest.raises(InputError, match="expected GraphXAIDatasets, got NoneType"):
        Pair(pair.a, None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'ba2motif' is no pair: it needs recipes 'ba2motif-a'"):
        Pair.load(tmp_path, "ba2motif")
    with pytest.raises(InputError, match="a pair needs two, one trained on each half"):
        evaluate(pair, ["saliency"], "runs/gin")
    with pytest.raises(InputError, match="expected two, one trained on each half"):
        evaluate(pair, ["saliency"], (_Constant(),))
    with pytest.raises(InputError, match="two models are for a Pair"):
        evaluate(pair.a, ["degree"], (_Constant(), _Constant()))
    with pytest.raises(InputError, match="has one cause per graph"):
        small = BA2Motif(tmp_path, graphs=40)
        Interventions.of(small, small)
    result = CliRunner().invoke(main, ["evaluate", "ba2motif-pair", "--csv", "--root", str(root)])
    assert result.exit_code == 2
    assert "--csv is not available for pairs; leave it out" in result.stderr


def test_missing_builds_have_the_size_of_the_first_and_others_are_compared(tmp_path: Path) -> None:
    for half, graphs in (("a", 40), ("b", 48)):
        build(f"ba2motif-pair-{half}", root=tmp_path, graphs=graphs, engine="serial", rings=False)
    with pytest.raises(InputError, match=r"number of graphs \(40 and 48\); build both from the"):
        Pair.load(tmp_path, "ba2motif-pair")
    shutil.rmtree(tmp_path / "ba2motif-pair-b")
    shutil.rmtree(tmp_path / "ba2motif-pair-both")
    small = Pair.load(tmp_path, "ba2motif-pair")
    assert small.both is not None
    assert [len(d) for d in (small.a, small.b, small.both)] == [40] * 3
    few = build("dihalo", root=tmp_path, graphs=5, engine="serial", rings=False)
    with pytest.raises(InputError, match="fewer than 9 classes: .*; build more graphs, or leave"):
        evaluate(GraphXAIDataset(tmp_path, "dihalo"), ["wl-log-odds-2"], split="train")
    assert few.graphs == 5


def test_halves_from_other_sources_are_refused(tmp_path: Path) -> None:
    molecules = tmp_path / "pool.smi"
    import gzip

    from graphxai_data.files.shipped import shipped

    lines = gzip.decompress((shipped("data") / "sources/zinc-clean-leads.smi.gz").read_bytes())
    molecules.write_bytes(b"\n".join(lines.splitlines()[:2000]))
    build("dihalo-pair-a", root=tmp_path, graphs=18, engine="serial", rings=False)
    build("dihalo-pair-b", root=tmp_path, graphs=18, engine="serial", rings=False,
          sources={"zinc": molecules})  # fmt: skip
    a, b = (GraphXAIDataset(tmp_path, f"dihalo-pair-{half}", graphs=18) for half in "ab")
    with pytest.raises(InputError, match="differ in their sources; build both from the same seed"):
        Pair(a, b)
    with pytest.raises(InputError, match=r"made from pool\.smi, which is no registered source"):
        Interventions.of(b, b)
