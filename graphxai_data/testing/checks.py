"""The promises of a generator, each checked by one method."""

import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphxai_data.building import engine as engines
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.survey import problems_of_graphs
from graphxai_data.building.verify import proven
from graphxai_data.errors import CheckFailedError
from graphxai_data.files.plugins import blamed
from graphxai_data.files.raw import Source
from graphxai_data.graphs.columns import Columns
from graphxai_data.graphs.digest import shard_digest, widened
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.shards import ShardReader, shard_bytes
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import rng_for
from graphxai_data.sources import find_sources
from graphxai_data.testing.damage import damages

# A prover has to find at least so much of the planted damage: another mask may be right as well.
_SHARE_TO_FIND = 0.9
# Deviation, in standard errors, from which the positions of rationale nodes are not random.
_LEAK = 6.0


@dataclass(frozen=True)
class Conformance:
    """What was checked: the recipe's name, the checks that passed, and graphs per second.

    Without a prover, "proof" and "damage" are not among the checks. `untested` names the damage
    that no graph could have, such as a missing alternative where none has two: whether the prover
    finds it is not known.
    """

    dataset: str
    checks: tuple[str, ...]
    graphs_per_second: float
    untested: tuple[str, ...] = ()


class GeneratorCheck:
    """The checks of one recipe; each returns a sentence if it fails, else None."""

    def __init__(
        self,
        recipe: Recipe,
        graphs: int,
        seed: int,
        sources: Mapping[str, str | Path] | None,
        slowest: float,
    ) -> None:
        self.recipe, self.seed, self.slowest = recipe, seed, slowest
        self.generator = recipe.generator_object
        self.sources: dict[str, Source] = find_sources(recipe, sources)
        plan = make_plan(recipe, seed, graphs, self.sources)
        self.plan = read_sources(plan, recipe, self.sources, seed)[0]
        before = _global_states()
        start = time.perf_counter()
        with blamed(recipe.plugin):
            self.generator.generate(self.plan.cut(0, 1), seed)
        first_seconds = time.perf_counter() - start
        if first_seconds * slowest > 10:  # the first graph may take longer
            raise CheckFailedError(
                f"{recipe.name}: {first_seconds:.2g} s per graph, expected at least {slowest:g} "
                "graphs per second"
            )
        start = time.perf_counter()
        with blamed(recipe.plugin):
            self.columns = self.generator.generate(self.plan, seed)
        self.speed = graphs / (time.perf_counter() - start)
        self.state_kept = _global_states() == before
        self.untested: list[str] = []

    def run(self) -> Conformance:
        """Run all checks; raise a `CheckFailedError` that names those that fail."""
        checks: tuple[Callable[[], str | None], ...] = (
            self.invariants, self.plan_followed, self.same_again, self.same_alone,
            self.same_in_another_process, self.seed_matters, self.global_state, self.stored,
            self.positions, self.fast_enough,
        )  # fmt: skip
        if self.generator.has_prover:
            checks += self.proof, self.damage
        failures: list[str] = []
        with blamed(self.recipe.plugin):
            for check in checks:
                if problem := check():
                    failures.append(problem)
                if failures and check == self.invariants:
                    break  # the other checks need valid arrays
            if failures:
                raise CheckFailedError(f"{self.recipe.name}: {'; '.join(failures)}")
        if self.untested:
            half, last = len(self.records) // 2, len(self.records) - 1
            warnings.warn(
                f"{self.recipe.name}: not tested whether the prover finds "
                f"{' or '.join(self.untested)}: none of the graphs {half} to {last} can have it; "
                "check more with graphs=",
                stacklevel=3,
            )
        names = tuple(check.__name__.replace("_", " ") for check in checks)
        return Conformance(self.recipe.name, names, self.speed, tuple(self.untested))

    def invariants(self) -> str | None:
        """Every graph has sorted edges in both directions, valid features and masks, and so on."""
        problems = problems_of_graphs(self.recipe, self.columns)
        return f"invariants: {problems[0]}" if problems else None

    def plan_followed(self) -> str | None:
        """Class, group, split and number of every graph are those of the plan."""
        for name, planned in self.plan.columns().items():
            if name == "y" and self.recipe.schema.label == "number":
                continue  # a number is not planned
            if not np.array_equal(self.columns[name], planned):
                return f"'{name}' is not what the plan says"
        return None

    def same_again(self) -> str | None:
        """A second call returns the same graphs."""
        same = shard_digest(self._made(self.plan)) == shard_digest(self.columns)
        return None if same else "made again, graphs are others"

    def same_alone(self) -> str | None:
        """Graphs are the same one at a time, in reverse order, and in two uneven parts."""
        count = len(self.plan.index)
        parts = [(i, 1) for i in reversed(range(count))]
        parts += [(0, count // 3), (count // 3, count - count // 3)]
        for first, size in parts:
            made, expected = self._made(self.plan.cut(first, size)), self._part(first, size)
            if size and shard_digest(made) != shard_digest(expected):
                return f"graph {first} is another when it is made with other graphs, or alone"
        return None

    def same_in_another_process(self) -> str | None:
        """Two fresh processes, in which hashes differ from those here, make the same graphs."""
        tasks = [(self.recipe, self.plan, self.seed)] * 2
        other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        environment = {"PYTHONHASHSEED": other}
        plugin = self.recipe.plugin
        results = engines.run(_digest_of, tasks, jobs=2, plugin=plugin, environment=environment)
        digests = set(results)
        if digests != {shard_digest(self.columns)}:
            return "another process makes other graphs (the order of a set, or a random state?)"
        return None

    def seed_matters(self) -> str | None:
        """Another seed gives other graphs, unless they are published ones."""
        if self.generator.is_published:
            return None
        plan = make_plan(self.recipe, self.seed + 1, len(self.plan.index), self.sources)
        plan = read_sources(plan, self.recipe, self.sources, self.seed + 1)[0]
        other = self.generator.generate(plan, self.seed + 1)
        if shard_digest(other) == shard_digest(self.columns):
            return "another seed gives the same graphs"
        return None

    def global_state(self) -> str | None:
        """The global random states of Python, NumPy and torch are untouched."""
        if self.state_kept:
            return None
        return "a global random state was changed; draw from rng only"

    def stored(self) -> str | None:
        """Graphs are the same after they were written and read."""
        identity = self.recipe.identity(self.seed)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "shard-00000.h5"
            schema, meaning = self.recipe.schema, self.recipe.meaning
            path.write_bytes(shard_bytes(self.columns, schema, meaning, **identity))
            shard = ShardReader(path)
            shard.check()
            self.records = [shard[i] for i in range(len(shard))]
            stored = widened(shard.columns)
        if all(np.array_equal(stored[name], self.columns[name]) for name in stored):
            return None
        return "graphs are others after they were stored and read back"

    def positions(self) -> str | None:
        """The numbers of rationale nodes look like random draws."""
        deviation, variance, neighbours, expected = 0.0, 0.0, 0, 0.0
        for record in self.records if self.recipe.schema.has_rationale else ():
            inside, nodes = np.flatnonzero(record.rationale), record.num_nodes
            marked = len(inside)
            if marked == 0:  # a null rationale has no positions
                continue
            deviation += inside.mean() - (nodes - 1) / 2
            variance += (nodes + 1) * (nodes - marked) / (12 * marked)
            neighbours += int((np.diff(inside) == 1).sum())
            expected += marked * (marked - 1) / nodes
        shifted = abs(deviation) > _LEAK * variance**0.5
        together = neighbours - expected > _LEAK * max(expected, 1.0) ** 0.5
        if shifted or together:
            return "node numbers give the rationale away; put the nodes in random order"
        return None

    def proof(self) -> str | None:
        """The prover accepts every graph."""
        prover = self.generator.prover(self.sources)
        for record in self.records if prover else ():
            if problems := proven(prover, record, self.recipe):  # type: ignore[arg-type]
                return f"the prover refuses graph {record.meta['graph_id']}: {problems[0]}"
        return None

    def damage(self) -> str | None:
        """The prover finds wrong labels and rationales."""
        # The first half stays whole, since a prover may compare graphs with earlier ones.
        half = len(self.records) // 2
        for what, change in damages(self.recipe.schema).items():
            prover = self.generator.prover(self.sources)
            if prover is None:
                return None
            for record in self.records[:half]:
                prover.problems(record)
            damaged = (
                change(self.records[i], rng_for(self.seed, what, i))
                for i in range(half, len(self.records))
            )
            noticed = [bool(prover.problems(record)) for record in damaged if record is not None]
            if not noticed:
                self.untested.append(what)
            if sum(noticed) < _SHARE_TO_FIND * len(noticed):
                return f"the prover finds {what} in {sum(noticed)} of {len(noticed)} graphs only"
        return None

    def fast_enough(self) -> str | None:
        """Graphs are made at the speed asked for."""
        if self.speed >= self.slowest:
            return None
        return f"{self.speed:.2g} graphs per second, expected at least {self.slowest:g}"

    def _made(self, plan: Plan) -> Columns:
        return self.generator.generate(plan, self.seed)

    def _part(self, first: int, graphs: int) -> Columns:
        """Return the columns of some of the graphs."""
        part: Columns = {}
        for column in self.recipe.schema.columns():
            ptr = np.arange(first, first + graphs + 1)
            if column.pointer:
                ptr = self.columns[column.pointer][first : first + graphs + 1]
                part[column.pointer] = ptr - ptr[0]
            rows = slice(int(ptr[0]), int(ptr[-1]))
            array = self.columns[column.name]
            part[column.name] = array[:, rows] if column.axis else array[rows]
        return part


def _digest_of(task: tuple[Recipe, Plan, int]) -> str:
    """Return the digest of the graphs of a plan; runs in a worker process."""
    recipe, plan, seed = task
    return shard_digest(recipe.generator_object.generate(plan, seed))


def _global_states() -> list[Any]:
    states: list[Any] = [random.getstate(), repr(np.random.get_state())]  # noqa: NPY002
    if torch := sys.modules.get("torch"):
        states.append(torch.get_rng_state().numpy().tobytes())
    return states
