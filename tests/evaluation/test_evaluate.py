import functools
import io
import re
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from click.testing import Result
from sklearn.metrics import roc_auc_score
from torch import nn
from torch_geometric.data import Data
from torch_geometric.explain import Explanation as PyGExplanation

from graphxai_data import GraphXAIDataset, build, evaluate, explain, jaccard_at_k, node_auroc
from graphxai_data.errors import InputError
from graphxai_data.evaluation.truth import Truth
from graphxai_data.explain.files import FORMAT, VERSION, ScoreFile
from graphxai_data.explain.variants import VARIANTS, variants_for
from graphxai_data.nn import GIN, GSAT, BcosGIN
from graphxai_data.nn.random import seeded
from graphxai_data.training.checkpoint import weights_digest


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("builds")
    build("ba2motif", root=root, graphs=150, engine="serial", rings=False)
    build("dihalo-decoy", root=root, graphs=90, engine="serial", rings=False)
    return root


@pytest.fixture(scope="module")
def dataset(root: Path) -> GraphXAIDataset:
    return GraphXAIDataset(root, "ba2motif")


@pytest.fixture(scope="module")
def test_part(root: Path) -> GraphXAIDataset:
    return GraphXAIDataset(root, "ba2motif", split="test")


@pytest.fixture(scope="module")
def model(dataset: GraphXAIDataset) -> nn.Module:
    with seeded(0):
        return BcosGIN(dataset.num_node_features, 2, 8, logit_bias=-1.0).train(mode=False)


def degrees(data: Data) -> torch.Tensor:
    return torch.bincount(data.edge_index[1], minlength=data.num_nodes).double()


def test_metrics_are_means_over_graphs(
    dataset: GraphXAIDataset, test_part: GraphXAIDataset
) -> None:
    table = evaluate(dataset, {"mine": degrees})
    assert isinstance(table, pd.DataFrame)
    assert list(table.index) == ["mine"]
    row = table.loc["mine"]
    pairs = [(degrees(data), data.node_mask) for data in test_part]
    assert row.graphs == len(pairs) == len(test_part)
    assert row.jaccard == pytest.approx(np.mean([jaccard_at_k(s, m) for s, m in pairs]))
    assert row.auroc == pytest.approx(np.mean([node_auroc(s, m) for s, m in pairs]))
    average = np.mean([roc_auc_score(m, s) for s, m in pairs])
    assert row.auroc_average == pytest.approx(average)
    scores, masks = (torch.cat(part) for part in zip(*pairs, strict=True))
    assert row.auroc_pooled_average == pytest.approx(roc_auc_score(masks, scores))
    assert row.auroc_pooled < row.auroc_pooled_average
    classes = [
        np.mean([jaccard_at_k(degrees(d), d.node_mask) for d in test_part if d.y == label])
        for label in (0, 1)
    ]
    assert row.worst_class_jaccard == pytest.approx(min(classes))
    assert np.isnan(row.edge_auroc_pooled)
    assert row.constant == 0


def test_an_explainer_may_be_anything_that_gives_scores(
    dataset: GraphXAIDataset, test_part: GraphXAIDataset, tmp_path: Path
) -> None:
    arrays = [degrees(data).numpy() for data in test_part]
    truth = Truth.of(test_part)
    file = ScoreFile(
        "ba2motif", dataset.manifest.content_sha256, "theirs", truth.graph_id, truth.node_ptr,
        np.concatenate(arrays),
    )  # fmt: skip
    file.save(tmp_path / "theirs.safetensors")
    ways = {
        "function": degrees,
        "with a default": lambda data, k=3: degrees(data),
        "partial": functools.partial(lambda scale, data: scale * degrees(data), 1),
        "PyG's": lambda data: PyGExplanation(node_mask=degrees(data)[:, None]),
        "explanation": lambda data: explain(None, data, method="degree"),
        "graph by graph": arrays,
        "array": np.concatenate(arrays),
        "tensor": torch.from_numpy(np.concatenate(arrays)),
        "ours": "degree",
        "file": file,
        "path": tmp_path / "theirs.safetensors",
        "text": str(tmp_path / "theirs.safetensors"),
    }
    table = evaluate(dataset, ways)
    assert list(table.index) == list(ways)
    whole = table.drop(columns=["edge_auroc_pooled"])
    assert (whole == whole.iloc[0]).all(axis=None)
    pd.testing.assert_frame_equal(evaluate(test_part, ways), table)


def test_functions_of_a_model_are_given_it_and_are_timed(
    dataset: GraphXAIDataset,
) -> None:
    with seeded(0):
        model = GSAT(dataset.num_node_features, 2, 8, 2).train(mode=False)
    ways = {"ours": "gsat-mean", "theirs": lambda m, data: explain(m, data, method="gsat")}
    table = evaluate(dataset, ways, model, timing=True)
    columns = ["jaccard", "auroc", "edge_auroc_pooled"]
    ours, theirs = table[columns].to_numpy()
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert (table.ms_per_graph > 0).all()
    every = evaluate(dataset, ["all"], model)
    floors = {"random", "degree", "two-core", "wl-log-odds-ball-2"}
    assert set(every.index) == {"gsat-mean", "gsat-max", "gsat-sum", *floors, "oracle"}


def test_functions_cannot_change_the_dataset(dataset: GraphXAIDataset) -> None:
    before = dataset._data.x.clone()

    def careless(data: Data) -> torch.Tensor:
        data.x.zero_()
        return degrees(data)

    evaluate(dataset, {"careless": careless})
    assert torch.equal(dataset._data.x, before)


def test_explainers_do_not_see_the_rationale(dataset: GraphXAIDataset) -> None:
    seen = set()

    def nosy(data: Data) -> torch.Tensor:
        seen.update(data.keys())
        return degrees(data)

    evaluate(dataset, {"nosy": nosy})
    assert seen == {"x", "edge_index", "y", "graph_id"}
    assert "node_mask" in dataset[0]


def test_floor_and_ceiling_and_the_columns_of_a_model(
    dataset: GraphXAIDataset, model: nn.Module
) -> None:
    table = evaluate(dataset, ["bcos", "bcos-contrast", "random", "oracle"], model, timing=True)
    assert table.loc["oracle", ["jaccard", "auroc", "precision"]].tolist() == [1, 1, 1]
    assert 0.05 < table.loc["random", "jaccard"] < 0.35
    assert table.loc["bcos", "completeness_gap"] < 1e-4
    assert table.loc["bcos", "edge_share"] == 0
    assert 0 <= table.loc["bcos", "negative_winners"] <= 1
    assert (table[["ms_per_graph", "ms_per_graph_batched"]] > 0).all(axis=None)
    assert table.loc["bcos", "ms_forward_batched"] > 0  # times are noisy


def test_edge_scores_are_pooled_as_gsat_does(dataset: GraphXAIDataset) -> None:
    with seeded(0):
        model = GSAT(dataset.num_node_features, 2, 8, 2).train(mode=False)
    table = evaluate(dataset, ["gsat"], model)
    assert list(table.index) == ["gsat-mean", "gsat-max", "gsat-sum"]
    test = [dataset[i] for i in dataset.get_idx_split()["test"]]
    scores = torch.cat([explain(model, data, method="gsat").edge_scores for data in test])
    masks = torch.cat([data.edge_mask for data in test])
    expected = roc_auc_score(masks, scores)
    assert table["edge_auroc_pooled"].tolist() == pytest.approx([expected] * 3, abs=1e-6)
    assert table.jaccard.nunique() > 1


def test_explainers_without_a_model_depend_on_the_dataset(root: Path) -> None:
    molecules = GraphXAIDataset(root, "dihalo-decoy")
    recipe = molecules.manifest.load_recipe()
    assert {v.name for v in variants_for(None, recipe)} == {
        "random", "degree", "halogen-closeness", "aryl-halogens", "like-pair", "di-halo-ring",
        "oracle",
    }  # fmt: skip
    table = evaluate(molecules, {"near": "halogen-closeness"})
    assert 0.1 < table.loc["near", "jaccard"] < 0.3  # decoys keep this heuristic low
    assert len({v.name for v in VARIANTS}) == len(VARIANTS)


def bad_scores(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Data], np.ndarray]:
    return lambda data: change(degrees(data).numpy())


@pytest.mark.parametrize(
    ("explainer", "message"),
    [
        (bad_scores(lambda s: s * np.nan), "scores of 'mine': nan at 0 of graph 0"),
        (bad_scores(lambda s: s[1:]), r"scores of 'mine': expected \[\d+\] for graph 0, got"),
        ([np.zeros(3)] * 4, r"scores of 'mine': expected 15 arrays, one per graph, got 4"),
        (lambda model, data: 0, "is a function of a model and a graph; give a model"),
        (lambda a, b, c: 0, r"expected fn\(data\) or fn\(model, data\), got another"),
        (bad_scores(np.zeros_like), "the same for all nodes of every graph, which ranks nothing"),
        (np.zeros(7), r"scores of 'mine': expected \[\d+\], those of 15 graphs one after"),
        ([np.zeros(3)] * 15, r"scores of 'mine': expected \[\d+\] for graph 0, got \[3\]"),
        ("bcoss", "unknown explainer 'bcoss'; did you mean 'bcos'"),
        ("gsat", "has several rows; choose one of gsat-mean, gsat-max, gsat-sum"),
        ("bcos", "explainer 'bcos' explains a model; give one"),
        ("nowhere.safetensors", "nowhere.safetensors: no such file"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(
    explainer: object, message: str, dataset: GraphXAIDataset
) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(dataset, {"mine": explainer})


def test_models_and_graphs_that_cannot_be_used_are_refused(
    root: Path, dataset: GraphXAIDataset, model: nn.Module
) -> None:
    with seeded(0):
        gin = GIN(dataset.num_node_features, 2, 8).train(mode=False)
        training = BcosGIN(dataset.num_node_features, 2)
    with pytest.raises(InputError, match="explainer 'bcos' is for a B-cos model, got GIN"):
        evaluate(dataset, ["bcos"], gin)
    with pytest.raises(InputError, match="in training mode"):
        evaluate(dataset, ["bcos"], training)
    with pytest.raises(InputError, match="split: expected one of train, valid, test, got 'tests'"):
        evaluate(dataset, ["degree"], split="tests")
    train = GraphXAIDataset(root, "ba2motif", split="train")
    with pytest.raises(InputError, match="is loaded with split 'train', not 'test'"):
        evaluate(train, ["degree"], split="test")
    assert evaluate(train, "degree").loc["degree", "graphs"] == len(train)
    with pytest.raises(InputError, match="faithfulness is to a model; give one"):
        evaluate(dataset, ["degree"], faithfulness=True)
    with pytest.raises(InputError, match="in training mode"):
        evaluate(dataset, ["degree"], training, faithfulness=True)
    with pytest.raises(InputError, match="model: expected a torch module, got int"):
        evaluate(dataset, ["degree"], 42)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no test graphs here"):
        evaluate(dataset[dataset.get_idx_split()["train"]], ["degree"])
    changed = GraphXAIDataset(root, "ba2motif", transform=lambda data: data)
    with pytest.raises(InputError, match="loaded with a transform"):
        evaluate(changed, ["degree"])


@pytest.fixture
def file(dataset: GraphXAIDataset, test_part: GraphXAIDataset) -> ScoreFile:
    truth = Truth.of(test_part)
    draws = np.random.default_rng(0)
    return ScoreFile(
        "ba2motif", dataset.manifest.content_sha256, "theirs", truth.graph_id, truth.node_ptr,
        draws.normal(size=truth.node_ptr[-1]), truth.edge_ptr,
        draws.normal(size=truth.edge_ptr[-1]),
    )  # fmt: skip


def test_an_explanation_file_is_read_as_written_in_any_order(
    file: ScoreFile, test_part: GraphXAIDataset, tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "scores.safetensors"
    file.save(path)
    first = path.read_bytes()
    file.save(path)
    assert path.read_bytes() == first
    strided = np.repeat(file.node_scores, 2)[::2]
    ScoreFile(**{**file.__dict__, "node_scores": strided}).save(path)  # type: ignore[arg-type]
    assert path.read_bytes() == first
    long = file.node_scores.astype(np.longdouble)
    ScoreFile(**{**file.__dict__, "node_scores": long}).save(path)  # type: ignore[arg-type]
    assert path.read_bytes() == first
    again = ScoreFile.load(path)
    for key in ("dataset", "content_sha256", "explainer", "model_sha256"):
        assert getattr(again, key) == getattr(file, key)
    for key in ("graph_id", "node_ptr", "node_scores", "edge_ptr", "edge_scores"):
        np.testing.assert_array_equal(getattr(again, key), getattr(file, key))
    # The same graphs in reverse order, and one of another split, which is ignored.
    parts = np.split(file.node_scores, file.node_ptr[1:-1])[::-1]
    lengths = [len(p) for p in parts]
    backwards = ScoreFile(
        "ba2motif", file.content_sha256, "back", np.append(file.graph_id[::-1], 10**6),
        np.cumsum([0, *lengths, 2]), np.concatenate([*parts, [1.0, 2.0]]),
    )  # fmt: skip
    table = evaluate(test_part, {"forth": file, "back": backwards})
    assert table.loc["forth", "jaccard"] == table.loc["back", "jaccard"]
    assert table.loc["forth", "edge_auroc_pooled"] > 0


def test_files_about_other_graphs_or_models_are_refused(
    file: ScoreFile, dataset: GraphXAIDataset, model: nn.Module, tmp_path: Path
) -> None:
    def changed(**values: object) -> ScoreFile:
        return ScoreFile(**{**file.__dict__, **values})  # type: ignore[arg-type]

    digest = "0" * 64
    cases = {
        "made for 'ba2motif', content 000000000000": changed(content_sha256=digest),
        "they explain another model": changed(model_sha256=digest),
        "none for 1 of the": changed(
            graph_id=file.graph_id[:-1], node_ptr=file.node_ptr[:-1],
            node_scores=file.node_scores[: file.node_ptr[-2]], edge_ptr=None, edge_scores=None,
        ),
    }  # fmt: skip
    for message, wrong in cases.items():
        with pytest.raises(InputError, match=message):
            evaluate(dataset, {"theirs": wrong}, model)
    swapped = np.array(file.node_ptr)
    swapped[1] += 1
    with pytest.raises(InputError, match="nodes in graph"):
        evaluate(dataset, {"theirs": changed(node_ptr=swapped)})
    evaluate(dataset, {"theirs": changed(model_sha256=weights_digest(model))}, model)
    evaluate(dataset, {"theirs": changed(content_sha256=digest)}, force=True)


def test_invalid_files_are_refused(file: ScoreFile, tmp_path: Path) -> None:
    def changed(**values: object) -> ScoreFile:
        return ScoreFile(**{**file.__dict__, **values})  # type: ignore[arg-type]

    for message, values in (
        ("a graph is there twice", {"graph_id": np.zeros_like(file.graph_id)}),
        ("node_ptr: expected", {"node_ptr": file.node_ptr[::-1]}),
        ("expected both or neither", {"edge_ptr": None}),
        ("node_scores: nan at 0", {"node_scores": file.node_scores * np.nan}),
        ("node_scores: expected", {"node_scores": file.node_scores[1:]}),
        ("graph_id: expected whole numbers", {"graph_id": file.graph_id + 0.5}),
        ("node_ptr: expected whole numbers", {"node_ptr": file.node_ptr.astype(float)}),
    ):
        with pytest.raises(InputError, match=message):
            changed(**values)
    path = tmp_path / "scores.safetensors"
    changed(node_scores=file.node_scores > 0).save(path)
    with pytest.raises(InputError, match="node_scores: expected numbers, got bool"):
        ScoreFile.load(path)
    file.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a safetensors file, or a damaged one"):
        ScoreFile.load(path)
    path.write_text("scores")
    with pytest.raises(InputError, match="not a safetensors file"):
        ScoreFile.load(path)
    arrays = safetensors.numpy.load(whole)
    texts = {"format": FORMAT, "version": VERSION, "dataset": "d", "content_sha256": "0"}
    texts["explainer"] = "e"
    for message, changed_arrays, changed_texts in (
        ("version 2, got graphxai-data scores, version 3", {}, {"version": "3"}),
        ("version 2, got None, version 2", {}, {"format": None}),
        ("'explainer' is missing", {}, {"explainer": None}),
        ("'graph_id' is missing", {"graph_id": None}, {}),
        ("expected both or neither", {"edge_ptr": None}, {}),
        ("node_scores: nan at 0 of graph 0", {"node_scores": file.node_scores * np.nan}, {}),
        ("node_scores: expected", {"node_scores": file.node_scores[:, None]}, {}),
        (
            "node_scores: expected numbers",
            {"node_scores": file.node_scores.astype(np.complex64)},
            {},
        ),
        ("graph_id: expected .graphs.", {"graph_id": file.graph_id[:, None]}, {}),
    ):
        tensors = {k: v for k, v in (arrays | changed_arrays).items() if v is not None}
        metadata = {k: v for k, v in (texts | changed_texts).items() if v is not None}
        safetensors.numpy.save_file(tensors, path, metadata)
        with pytest.raises(InputError, match=f"^{re.escape(str(path))}: .*{message}"):
            ScoreFile.load(path)


def test_a_file_of_the_earlier_format_says_what_to_do(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    path = tmp_path / "theirs.h5"
    with h5py.File(path, "w") as f:
        f.attrs["format"], f.attrs["version"] = "graphxai-data scores", 1
    message = "theirs.h5: an HDF5 file, as an earlier version wrote it; .* save it again with"
    with pytest.raises(InputError, match=message):
        evaluate(dataset, {"theirs": str(path)})


def test_files_are_scored_on_the_command_line(
    file: ScoreFile, root: Path, tmp_path: Path, cli: Callable[..., Result]
) -> None:
    path = tmp_path / "theirs.safetensors"
    file.save(path)
    result = cli("evaluate", "ba2motif", "--root", root, "--scores", path)
    assert result.exit_code == 0
    assert " theirs " in result.output
    assert "oracle" in result.output
    result = cli("evaluate", "ba2motif", "--root", root, "--scores", path, "--csv")
    table = pd.read_csv(io.StringIO(result.stdout), index_col="explainer")
    assert table.loc["oracle", "jaccard"] == 1
    other = cli("evaluate", "dihalo-decoy", "--root", root, "--scores", path)
    assert other.exit_code == 2
    assert "made for 'ba2motif'" in other.stderr
