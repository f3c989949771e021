"""What `graphxai-data evaluate` leaves, read for a page: models, tables and explanation files."""

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
from graphxai_data.manifest import Manifest
from graphxai_data.training.checkpoint import CARD, WEIGHTS, Card, read_card


@dataclass
class Evaluations:
    """What the files that were given hold.

    Attributes:
        folders: of models.
        labels: their names in tables, by the digests of their weights.
        files: explanation files, with their paths.
        rows: of tables.
    """

    folders: list[Path] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    files: list[tuple[Path, ScoreFile]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def read_evaluations(evaluations: Sequence[str | Path], manifest: Manifest) -> Evaluations:
    """What these model folders, tables and explanation files hold, or an `InputError`."""
    found = Evaluations()
    seen: set[tuple[str, int]] = set()
    for given in evaluations:
        path = Path(given).expanduser()
        if path.is_file() and is_score_file(path) and path.name != WEIGHTS:
            file = ScoreFile.load(path)
            _same_build(path, file.content_sha256, manifest)
            found.files.append((path, file))
        elif path.is_dir() or (path.is_file() and (path.parent / CARD).is_file()):
            folder = path if path.is_dir() else path.parent
            card = read_card(folder)
            if card.weights_sha256 in found.labels:
                continue  # a folder and its file, or copies, are one model
            # Models of one kind and different seeds are a row; others of that seed are another.
            again = (card.model, card.seed) in seen
            label = f"{card.model} ({folder})" if again else card.model
            seen.add((card.model, card.seed))
            found.labels[card.weights_sha256] = label
            found.folders.append(folder)
            found.rows += _kept_rows(folder / RESULTS, label, card, manifest)
        elif path.is_file():
            found.rows += _printed_rows(path, manifest)
        else:
            raise InputError(
                f"{path}: no such file; expected what `graphxai-data evaluate` leaves: a model "
                f"folder or its {RESULTS}, the output of --json, or an explanation file ({SUFFIX})"
            )
    return found


def _kept_rows(path: Path, label: str, card: Card, manifest: Manifest) -> list[Row]:
    """What is kept beside a model of its explanations of test graphs, if anything is."""
    if not path.is_file():
        return []
    with _explained_errors(path):
        whole = json.loads(path.read_text(encoding="utf-8"))
        _same_build(path, whole["of"]["content_sha256"], manifest)
        if whole["of"]["weights_sha256"] != card.weights_sha256:
            raise InputError(
                f"{path}: about other weights than the model's beside it; evaluate it again"
            )
        test = card.scores.get("test", {})
        who: Row = {"model": label, "seed": card.seed}
        who |= {key: test[key] for key in ("accuracy", "f1") if key in test}
        kept = whole["splits"].get("test", {})
        rows = [{**who, "explainer": name, **row} for name, row in kept.items()]
        return _checked(rows, manifest)


def _printed_rows(path: Path, manifest: Manifest) -> list[Row]:
    """The rows of what `evaluate --json` printed."""
    with _explained_errors(path):
        whole = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(whole, list):
            raise InputError(
                f"{path}: a table of explanation files, which does not say what build it is of; "
                "give the explanation files themselves"
            )
        _same_build(path, whole["content_sha256"], manifest)
        if whole["split"] != "test":
            raise InputError(
                f"{path}: about {whole['split']} graphs; a page compares explainers on test graphs"
            )
        return _checked(whole["rows"], manifest)


def _checked(rows: list[Row], manifest: Manifest) -> list[Row]:
    """The numbers and words of rows, without curves; an error for what is no table of them."""
    plain = [{k: v for k, v in row.items() if not isinstance(v, dict | list)} for row in rows]
    summarise(manifest.dataset, plain)
    return plain


@contextmanager
def _explained_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: neither an {RESULTS} beside a model nor the output of `evaluate --json` "
            f"({type(error).__name__}: {error})"
        ) from None


def _same_build(path: Path, content_sha256: str, manifest: Manifest) -> None:
    if content_sha256 != manifest.content_sha256:
        raise InputError(
            f"{path}: about other graphs (content {str(content_sha256)[:12]}…) than this build's "
            f"({manifest.content_sha256[:12]}…); evaluate on this build, or report on the other"
        )
