"""Reads what `graphxai-data evaluate` writes: models, tables and explanation files."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import summarise
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.evaluation.study import RESULTS
from graphxai_data.explain.files import SUFFIX, ScoreFile, is_score_file
from graphxai_data.files.shipped import shipped
from graphxai_data.manifest import Manifest
from graphxai_data.training.checkpoint import CARD, WEIGHTS, Card, read_card


@dataclass
class Evaluations:
    """Models, explanation files and rows of tables."""

    models: dict[Path, str] = field(default_factory=dict)  # names in tables, by folder
    files: dict[Path, ScoreFile] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # one per model, explainer and seed


def read_evaluations(paths: Sequence[str | Path], manifest: Manifest) -> Evaluations:
    """Read model folders, tables and explanation files; an `InputError` for anything else.

    Without any, the shipped models of the same recipe are returned.
    """
    evaluations = Evaluations(models={} if paths else _shipped_models(manifest))
    weights: set[str] = set()
    seeds: set[tuple[str, int]] = set()
    for path in (Path(path).expanduser() for path in paths):
        if path.is_file() and is_score_file(path) and path.name != WEIGHTS:
            file = ScoreFile.load(path)
            _check_build(path, file.content_sha256, manifest)
            evaluations.files[path] = file
        elif path.is_dir() or (path.is_file() and (path.parent / CARD).is_file()):
            folder = path if path.is_dir() else path.parent
            card = read_card(folder)
            if card.weights_sha256 in weights:
                continue  # a folder and its file, or two copies of one model
            # Models of one name and different seeds share a row; another of the same seed does not.
            is_second = (card.model, card.seed) in seeds
            name = f"{card.model} ({folder})" if is_second else card.model
            weights.add(card.weights_sha256)
            seeds.add((card.model, card.seed))
            evaluations.models[folder] = name
            evaluations.rows += _saved_rows(folder / RESULTS, name, card, manifest)
        elif path.is_file():
            evaluations.rows += _printed_rows(path, manifest)
        else:
            raise InputError(
                f"{path}: no such file; expected a result of `graphxai-data evaluate`: a model "
                f"folder or its {RESULTS}, the output of --json, or an explanation file ({SUFFIX})"
            )
    return evaluations


def _shipped_models(manifest: Manifest) -> dict[Path, str]:
    folders = sorted(path.parent for path in shipped("models").glob(f"*/{CARD}"))
    cards = {folder: read_card(folder) for folder in folders}
    same = [f for f in folders if cards[f].data.recipe_sha256 == manifest.recipe_sha256]
    return {folder: cards[folder].model for folder in same}


def _saved_rows(path: Path, name: str, card: Card, manifest: Manifest) -> list[Row]:
    """Return the rows for test graphs that are saved next to a model, if any."""
    if not path.is_file():
        return []
    with _input_errors(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        _check_build(path, content["of"]["content_sha256"], manifest)
        if content["of"]["weights_sha256"] != card.weights_sha256:
            raise InputError(f"{path}: about other weights than the model's; evaluate it again")
        rows = content["splits"].get("test", {}).items()
        identity = {"model": name, "seed": card.seed}
        return _numbers([identity | {"explainer": key} | row for key, row in rows], manifest)


def _printed_rows(path: Path, manifest: Manifest) -> list[Row]:
    """Return the rows of an output of `evaluate --json`."""
    with _input_errors(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, list):
            raise InputError(
                f"{path}: a table of explanation files, which does not name its build; give the "
                "explanation files themselves"
            )
        _check_build(path, content["content_sha256"], manifest)
        if content["split"] != "test":
            raise InputError(
                f"{path}: about {content['split']} graphs; expected test graphs, which a page "
                "compares explainers on"
            )
        return _numbers(content["rows"], manifest)


def _numbers(rows: list[Row], manifest: Manifest) -> list[Row]:
    """Return rows without their curves; raises if they cannot be summed up."""
    for row in rows:
        for key in ("model", "explainer"):
            if not isinstance(row[key], str):
                raise ValueError(f"{key}: expected text, got {row[key]!r}")
    plain = [{k: v for k, v in row.items() if not isinstance(v, dict | list)} for row in rows]
    summarise(manifest.dataset, plain)
    return plain


@contextmanager
def _input_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: neither the {RESULTS} of a model nor the output of `evaluate --json` "
            f"({type(error).__name__}: {error})"
        ) from None


def _check_build(path: Path, content_sha256: str, manifest: Manifest) -> None:
    if content_sha256 != manifest.content_sha256:
        raise InputError(
            f"{path}: about other graphs (content {str(content_sha256)[:12]}…) than this build's "
            f"({manifest.content_sha256[:12]}…); evaluate on this build, or report on the other"
        )
