"""Generators that break a promise. Light to import, as worker processes do."""

import random
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphxai_data import Generator, GraphRecord, Prover
from tests.generators.toy import StarProver, Toy
from tests.generators.toy_forms import PairProver, RedPairs, SumProver, Sums


class DrawsGlobally(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        random.random()  # noqa: S311
        return super().make(label, rng)


class KnowsItsNeighbours(Toy):
    """A graph depends on how many are made with it."""

    def generate(self, plan: Any, seed: int) -> Any:
        columns = super().generate(plan, seed)
        if len(plan.index) < 30:
            columns["x"] = (columns["x"] + 1) % 3
        return columns


class ForgetsTheSeed(Toy):
    def generate(self, plan: Any, seed: int) -> Any:
        return super().generate(replace(plan, split=np.zeros_like(plan.split)), 0)


class NotShuffled(Toy):
    shuffle_nodes = False


class HashOrder(Toy):
    """The order of a set of strings differs between processes."""

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        record = super().make(label, rng)
        order = list({str(number) for number in range(record.num_nodes)})
        return replace(record, x=record.x[[int(number) for number in order]])


class Blind(Prover):
    def problems(self, record: GraphRecord) -> list[str]:
        return []


class NeverSatisfied(Prover):
    def problems(self, record: GraphRecord) -> list[str]:
        return ["I do not like it"]


class BlindToMasks(StarProver):
    def problems(self, record: GraphRecord) -> list[str]:
        return [problem for problem in super().problems(record) if "class" in problem]


class ProvenWithoutMasks(Toy):
    def prover(self, sources: Any) -> Prover:
        return BlindToMasks()


class Sleepy(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        time.sleep(0.01)
        return super().make(label, rng)


class BlindlyProven(Toy):
    def prover(self, sources: Any) -> Prover:
        return Blind()


class Refused(Toy):
    def prover(self, sources: Any) -> Prover:
        return NeverSatisfied()


class WithDefaults(Toy):
    @dataclass(frozen=True)
    class Params(Generator.Params):
        longest: int = 6


class Unproven(Toy):
    prover = Generator.prover


class BlindToOthers(PairProver):
    """Is content if what is stored are pairs, whether there are others or not."""

    def problems(self, record: GraphRecord) -> list[str]:
        source, target = record.edge_index
        red = record.x[:, 1] == 1
        inside = [mask.sum() == 2 and red[mask].all() for mask in record.alternatives]
        joined = [(mask[source] & mask[target]).any() for mask in record.alternatives]
        if not all(inside + joined):
            return ["an alternative is no pair"]
        return [problem for problem in super().problems(record) if "class" in problem]


class ProvenWithoutTheOthers(RedPairs):
    def prover(self, sources: Any) -> Prover:
        return BlindToOthers()


class SinglePairs(RedPairs):
    """No graph has two alternatives, although the schema allows them."""

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        record = super().make(label, rng)
        while len(record.alternatives) > 1:
            record = super().make(label, rng)
        return record


class BlindToNull(PairProver):
    def problems(self, record: GraphRecord) -> list[str]:
        has_red = (record.x[:, 1] == 1).any()
        return [p for p in super().problems(record) if has_red or "class" in p]


class ProvenWithoutNull(RedPairs):
    def prover(self, sources: Any) -> Prover:
        return BlindToNull()


class OnlySums(SumProver):
    def problems(self, record: GraphRecord) -> list[str]:
        return [problem for problem in super().problems(record) if "sum" in problem]


class ProvenWithoutWeights(Sums):
    def prover(self, sources: Any) -> Prover:
        return OnlySums()


class OnlyWeights(SumProver):
    def problems(self, record: GraphRecord) -> list[str]:
        return [problem for problem in super().problems(record) if "weight" in problem]


class ProvenWithoutSums(Sums):
    def prover(self, sources: Any) -> Prover:
        return OnlyWeights()
