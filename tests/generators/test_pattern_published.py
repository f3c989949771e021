import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import Result

from graphxai_data import GraphXAIDataset, build
from graphxai_data.building.verify import verify
from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.generators.pattern_published_proof import PublishedPatternProver
from graphxai_data.graphs.shards import ShardReader

Lists = list[list[dict[str, Any]]]


def published(graphs: int = 14) -> Lists:
    """Return the content of a file such as PyG's, with small graphs."""
    draws = np.random.default_rng(0)
    lists: Lists = [[], [], []]
    for i in range(graphs):
        nodes = 4 + i % 3
        upper = np.triu(draws.random((nodes, nodes)) < 0.6, 1)
        edges = np.stack(np.nonzero(upper | upper.T))
        lists[0 if i % 7 < 5 else i % 7 - 4].append(
            {
                "x": torch.eye(3)[torch.from_numpy(draws.integers(0, 3, nodes))],
                "edge_index": torch.from_numpy(edges[:, draws.permutation(edges.shape[1])]),
                "y": torch.from_numpy(draws.integers(0, 2, nodes)),
            }
        )
    return lists


def written(folder: Path, content: Any) -> Path:
    torch.save(content, folder / "PATTERN_v2.pt")
    return folder / "PATTERN_v2.pt"


def test_graphs_and_splits_are_those_of_the_file(tmp_path: Path) -> None:
    lists = published()
    source = written(tmp_path, lists)
    build("pattern-published", root=tmp_path, graphs=14, sources={"pattern": source}, rings=False)
    folder = tmp_path / "pattern-published" / "seed-0"
    assert verify(folder, full=True, sources={"pattern": source}) == []
    dataset = GraphXAIDataset(tmp_path, "pattern-published")
    for rows, stored in zip(dataset.get_idx_split().values(), lists, strict=True):
        assert len(rows) == len(stored)
        for data, graph in zip(dataset[rows], stored, strict=True):
            assert torch.equal(data.x, graph["x"])
            assert torch.equal(data.y, graph["y"])
            order = np.lexsort(graph["edge_index"].numpy()[::-1])
            assert torch.equal(data.edge_index, graph["edge_index"][:, order])


def test_parameters_are_accepted_as_tensors(tmp_path: Path) -> None:
    lists = published()
    lists[0][0]["x"].requires_grad_()
    source = written(tmp_path, lists)
    build("pattern-published", root=tmp_path, graphs=14, sources={"pattern": source}, rings=False)


def test_a_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    lists, digests = published(), []
    for root in ("a", "b"):
        source = written(tmp_path, lists)
        manifest = build(
            "pattern-published", root=tmp_path / root, graphs=14, sources={"pattern": source},
            rings=False,
        )  # fmt: skip
        digests.append(manifest.content_sha256)
        lists[0][0]["y"] = 1 - lists[0][0]["y"]
    assert digests[0] != digests[1]


def test_a_wrong_graph_is_found(tmp_path: Path) -> None:
    source = written(tmp_path, published())
    build("pattern-published", root=tmp_path, graphs=14, sources={"pattern": source}, rings=False)
    record = ShardReader(tmp_path / "pattern-published" / "seed-0" / "shard-00000.h5")[0]
    prover = PublishedPatternProver(None, {"pattern": Source("user's file", source, "")})
    assert prover.problems(record) == []
    record.x[0] = np.roll(record.x[0], 1)
    assert record.node_y is not None
    record = replace(record, node_y=1 - record.node_y)
    assert prover.problems(record) == [
        "the classes of its nodes are not those of the file",
        "its features are not those of the file",
    ]


def changed(key: str, change: Callable[[torch.Tensor], Any]) -> Callable[[Lists], Lists]:
    def result(lists: Lists) -> Lists:
        lists[0][1][key] = change(lists[0][1][key])
        return lists

    return result


class Hostile:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("hostile",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:2], "other content than expected; expected PATTERN_v2.pt"),
        (lambda t: {"train": t}, "other content than expected; expected PATTERN_v2.pt"),
        (lambda t: [[t[0]], t[1], t[2]], "5 graphs, 14 asked for"),
        (lambda t: [Hostile(), *t[1:]], "cannot be read"),
        (changed("y", lambda y: y.tolist()), "graph 1: expected a dictionary with a tensor y"),
        (changed("y", lambda y: y + 1), "graph 1: y: expected 5 classes, 0 or 1, one per node"),
        (changed("y", lambda y: y[:-1]), "graph 1: y: expected 5 classes"),
        (changed("x", lambda x: x[:, :2]), r"graph 1: x has shape \(5, 2\), expected \[nodes, 3\]"),
        (changed("x", lambda x: x * 2), "graph 1: x is not one-hot"),
        (changed("edge_index", lambda e: e + 4), "edge_index: 4 to 8, expected 0 to 4"),
        (changed("edge_index", lambda e: e - 1), "edge_index: -1 to 3, expected 0 to 4"),
        (changed("edge_index", lambda e: e.t()), "graph 1: edge_index has shape"),
        (changed("edge_index", lambda e: e.float()), "edge_index: numbers of type float32 are not"),
        (changed("x", lambda x: x.to(torch.bfloat16)), "graph 1: x: not a plain tensor"),
        (changed("x", lambda x: x.to_sparse()), "graph 1: x: not a plain tensor"),
        (changed("x", lambda x: x.to(torch.complex64)), "x: numbers of type complex64 are not"),
        (changed("x", lambda x: x[:1].expand(10**13, 3)), "x: not a plain tensor .more numbers"),
        (lambda t: torch.eye(3), "other content than expected"),
        (changed("edge_index", lambda e: e[:, 1:]), "graph 1: edge_index: .* lacks its reverse"),
        (
            changed("edge_index", lambda e: torch.cat([e, e], 1)),
            r"column \d+: \d, \d is there twice",
        ),
        (
            changed("edge_index", lambda e: torch.ones_like(e)),
            "edge_index: column 0: 1, 1 is a self-loop",
        ),
    ],
)
def test_files_that_make_no_sense_are_refused_and_nothing_is_written(
    change: Callable[[Lists], Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    source = written(tmp_path, change(published()))
    with pytest.raises(InputError, match=message):
        build("pattern-published", root=tmp_path, graphs=14, sources={"pattern": source})
    assert not (tmp_path / "pattern-published" / "seed-0").exists()
    assert not (tmp_path / "hostile").exists()


@pytest.mark.parametrize("content", [b"", b"x", b"PK\x03\x04", b"\x80\x02."])
def test_a_file_of_another_kind_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.pt: cannot be read .*expected PATTERN_v2\.pt"):
        build("pattern-published", root=tmp_path, sources={"pattern": tmp_path / "a.pt"})


def test_without_the_file_it_says_where_to_get_it(
    tmp_path: Path, cli: Callable[..., Result]
) -> None:
    result = cli("build", "pattern-published", "--root", tmp_path)
    assert result.exit_code == 2
    assert "get it from https://data.pyg.org" in result.stderr
    assert "pass --source pattern=FILE" in result.stderr
