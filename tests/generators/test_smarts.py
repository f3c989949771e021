"""smarts: classes and rationales by a rule over substructures, on the shipped pool and by hand."""

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem

from graphxai_data.building.build import build
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.verify import verify
from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.generators.smarts import TOO_MANY, WHOLE, SmartsGenerator, SmartsParams
from graphxai_data.generators.smarts_proof import SmartsProver
from graphxai_data.graphs.columns import Columns, global_edges, unpack
from graphxai_data.graphs.rationale import bits_of
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.union import Graphs
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe, shipped_names
from graphxai_data.rings.rationale_metrics import best_jaccard_at_k
from graphxai_data.sources import find_sources
from tests.generators.smarts_counts import COUNTS

NAMES = [name for name in shipped_names() if Recipe.load(name).generator == "smarts"]
GRAPHS = 60
ATOMS = ("C", "N", "O", "F", "Cl", "Br", "S")


def _params(rule: str = "carbonyl", balance: str = "classes", **smarts: str) -> SmartsParams:
    return SmartsParams(10, ATOMS, 1, 60, smarts or {"carbonyl": "C=O"}, rule, balance)


def _generator(*args: str, **smarts: str) -> SmartsGenerator:
    generator = SmartsGenerator(_params(*args, **smarts))
    generator.name = "smarts"
    return generator


def _ways(generator: SmartsGenerator, smiles: str) -> tuple[int, set[frozenset[int]]]:
    """Return class and alternatives of a molecule, as atoms of the SMILES."""
    judgement = generator.judge(Chem.MolFromSmiles(smiles))
    assert not isinstance(judgement, str), judgement
    bits = generator.truth_columns(judgement.truth, 64)["alternative_bits"]
    masks = [(bits >> i & 1).nonzero()[0] for i in range(len(judgement.truth))]
    return judgement.label, {frozenset(mask.tolist()) for mask in masks}


@lru_cache(maxsize=len(NAMES))
def _small(name: str) -> tuple[SmartsGenerator, Columns]:
    recipe = Recipe.load(name)
    sources = find_sources(recipe)
    plan = make_plan(recipe, 3, GRAPHS, sources)
    plan, _ = read_sources(plan, recipe, sources, 3)
    generator = recipe.generator_object
    assert isinstance(generator, SmartsGenerator)
    return generator, generator.generate(plan, 3)


def _records(name: str) -> list[GraphRecord]:
    generator, columns = _small(name)
    return [unpack(columns, generator.schema(), i) for i in range(GRAPHS)]


# Aspirin: an ester, an acid and a benzene ring.
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


@pytest.mark.parametrize(
    ("rule", "smarts", "smiles", "label", "alternatives"),
    [
        # One ring with twelve symmetries is one alternative.
        ("benzene", {"benzene": "c1ccccc1"}, ASPIRIN, 1, [{4, 5, 6, 7, 8, 9}]),
        ("benzene", {"benzene": "c1ccccc1"}, "CCO", 0, []),
        # Naphthalene has two rings, pyridine none of carbon only.
        (
            "benzene", {"benzene": "c1ccccc1"}, "Cc1ccc2ccccc2c1", 1,
            [{1, 2, 3, 4, 9, 10}, {4, 5, 6, 7, 8, 9}],
        ),
        ("benzene", {"benzene": "c1ccccc1"}, "c1ccncc1C", 0, []),
        ("carbonyl", {"carbonyl": "C=O"}, ASPIRIN, 1, [{1, 2}, {10, 11}]),
        (
            "fluoride and carbonyl", {"fluoride": "[FX1]", "carbonyl": "[CX3]=O"},
            "FC(F)C(=O)C", 1, [{0, 3, 4}, {2, 3, 4}],
        ),
        (
            "fluoride and carbonyl", {"fluoride": "[FX1]", "carbonyl": "[CX3]=O"},
            "CC(=O)C", 0, [],
        ),
        ("fluoride or carbonyl", {"fluoride": "F", "carbonyl": "C=O"}, "FCC=O", 1, [{0}, {2, 3}]),
        # The class is negative because of the alkene.
        ("not alkene", {"alkene": "C=C"}, "CCC=CC=C", 0, [{2, 3}, {4, 5}]),
        ("not alkene", {"alkene": "C=C"}, "CCO", 1, []),
        # In isopentanol, only C, C, O at its end is a chain of three atoms without a branch.
        ("alkane", {"alkane": "[R0;D2,D1][R0;D2][R0;D2,D1]"}, "CC(C)CCO", 1, [{3, 4, 5}]),
        # Norcarane is a ring of three and one of six; its outline of seven does not count.
        ("ring7", {"ring7": "[k7]~1~[k7]~[k7]~[k7]~[k7]~[k7]~[k7]~1"}, "C1CCC2CC2C1", 0, []),
        (
            "ring7", {"ring7": "[k7]~1~[k7]~[k7]~[k7]~[k7]~[k7]~[k7]~1"}, "CC1CCCCCC1", 1,
            [{1, 2, 3, 4, 5, 6, 7}],
        ),
    ],
)  # fmt: skip
def test_alternatives_counted_by_hand(
    rule: str, smarts: dict[str, str], smiles: str, label: int, alternatives: list[set[int]]
) -> None:
    expected = label, {frozenset(atoms) for atoms in alternatives}
    assert _ways(_generator(rule, **smarts), smiles) == expected


@pytest.mark.parametrize("name", NAMES)
def test_classes_and_alternatives_are_as_an_independent_count_says(name: str) -> None:
    for record in _records(name):
        counted = COUNTS[name](Chem.MolFromSmiles(record.meta["smiles"]))
        assert (record.y, len(record.alternatives)) == counted, record.meta["smiles"]


@pytest.mark.parametrize("name", NAMES)
def test_the_prover_agrees_and_classes_are_balanced(name: str) -> None:
    records = _records(name)
    prover = SmartsProver(Recipe.load(name).params)
    assert [problem for record in records for problem in prover.problems(record)] == []
    assert Counter(record.y for record in records) == {0: GRAPHS // 2, 1: GRAPHS // 2}
    sizes = [record.num_nodes for record in records]
    assert sizes[::2] == sizes[1::2]
    assert any(record.rationale.any() for record in records)
    assert not all(record.rationale.any() for record in records)


def _damage(record: GraphRecord) -> dict[str, GraphRecord]:
    """Return the record with one claim changed, by what a prover has to say about it."""
    alternatives = record.alternatives
    grown = alternatives.copy()
    grown[0, int(np.argmin(record.rationale))] = True
    bits = bits_of(grown, record.num_nodes)
    without_edges = np.zeros_like(record.edge_mask)
    hydrogens = {**record.meta, "hydrogens": record.meta["hydrogens"] + 1}
    charge = {**record.meta, "charge": record.meta["charge"] + 1}
    smiles = {**record.meta, "smiles": "C" * record.num_nodes}
    fewer = bits_of(alternatives[1:], record.num_nodes)
    return {
        "its class": replace(record, y=1 - record.y),
        "alternatives, not": replace(record, alternative_bits=bits),
        "it has 1 alternatives, not the 2": replace(record, alternative_bits=fewer),
        "node_mask": replace(record, node_mask=~record.rationale),
        "edge_mask": replace(record, edge_mask=without_edges),
        "its hydrogens": replace(record, meta=hydrogens),
        "its charges": replace(record, meta=charge),
        "its edges": replace(record, meta=smiles),
        "not its element": replace(record, x=np.roll(record.x, 1, axis=1)),
    }


def test_the_prover_notices_damage() -> None:
    record = next(r for r in _records("benzene") if len(r.alternatives) == 2)
    params = Recipe.load("benzene").params
    assert SmartsProver(params).problems(record) == []
    for expected, damaged in _damage(record).items():
        problems = SmartsProver(params).problems(damaged)
        assert any(expected in problem for problem in problems), (expected, problems)


def test_the_prover_notices_repeated_molecules_and_divided_scaffolds() -> None:
    record = _records("benzene")[1]
    prover = SmartsProver(Recipe.load("benzene").params)
    assert prover.problems(record) == []
    again = replace(record, meta={**record.meta, "graph_id": 999}, group=record.group + 1)
    assert prover.problems(again) == [
        f"the same molecule as graph {record.meta['graph_id']}",
        "its group is not its Murcko scaffold",
    ]


def _graphs(columns: Columns) -> Graphs:
    x = columns["x"].astype(np.int64)
    return Graphs(x, global_edges(columns), columns["edge_attr"], columns["node_ptr"])


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_of_the_definition_finds_the_rationale_from_arrays_alone(name: str) -> None:
    generator, columns = _small(name)
    (rule,) = [rule for rule in generator.rules() if rule.is_definition]
    scores = rule.score(_graphs(columns))
    assert rule.name == "substructures"
    assert (scores > 0).tolist() == columns["node_mask"].astype(bool).tolist()
    for record in _records(name):
        first = int(columns["node_ptr"][record.meta["graph_id"]])
        if record.rationale.any():
            own = scores[first : first + record.num_nodes]
            assert best_jaccard_at_k(own, record.alternatives) == 1


def test_rules_of_elements_and_aromatic_atoms() -> None:
    generator, columns = _small("fluoride-carbonyl")
    graphs = _graphs(columns)
    scores = {rule.name: rule.score(graphs) for rule in generator.rules()}
    elements = np.array(ATOMS)[graphs.x]
    assert scores["heteroatoms"].tolist() == (elements != "C").tolist()
    assert scores["named-heteroatoms"].tolist() == np.isin(elements, ["F", "O"]).tolist()
    aromatic = [
        Chem.MolFromSmiles(record.meta["smiles"]).GetAtomWithIdx(int(atom)).GetIsAromatic()
        for record in _records("fluoride-carbonyl")
        for atom in record.meta["smiles_atom"]
    ]
    assert scores["aromatic-atoms"].tolist() == aromatic


@pytest.mark.parametrize("name", NAMES)
def test_rules_that_can_say_nothing_are_left_out(name: str) -> None:
    """The SMARTS of these name no element other than carbon."""
    names = [rule.name for rule in _small(name)[0].rules()]
    without = name in ("benzene", "rings-max")
    assert ("named-heteroatoms" in names) != without


def test_hydrocarbons_have_no_rules_of_heteroatoms() -> None:
    only_carbon = replace(_params("a", a="CC"), atoms=("C",))
    assert [r.name for r in SmartsGenerator(only_carbon).rules()] == [
        "aromatic-atoms", "substructures",
    ]  # fmt: skip


def test_every_combination_that_makes_a_class_is_equally_frequent() -> None:
    generator, columns = _small("logic-10")
    patterns = {n: Chem.MolFromSmarts(s) for n, s in generator.params.substructures.items()}
    combinations: Counter[tuple[bool, ...]] = Counter()
    for record in (unpack(columns, generator.schema(), i) for i in range(0, GRAPHS, 2)):
        molecule = Chem.MolFromSmiles(record.meta["smiles"])
        combinations[tuple(map(molecule.HasSubstructMatch, patterns.values()))] += 1
    assert len(combinations) == 7  # all but the one with all three
    assert max(combinations.values()) - min(combinations.values()) <= 1


def test_molecules_that_cannot_show_their_class_are_rejected() -> None:
    generator = _generator("chain", chain="CC")
    assert generator.judge(Chem.MolFromSmiles("CC")) == WHOLE
    assert generator.judge(Chem.MolFromSmiles("C" * 70 + "O")) == TOO_MANY
    halogens = _generator("a and b", a="F", b="Cl")
    sixty_four = "C(F)(Cl)" * 8 + "O"
    assert halogens.judge(Chem.MolFromSmiles(sixty_four)) == TOO_MANY
    sixty_three = "C(F)(Cl)" * 7 + "C(F)(F)O"
    assert len(_ways(halogens, sixty_three)[1]) == 63


@pytest.mark.parametrize(
    ("rule", "smarts", "message"),
    [
        ("a", {"a": "C=="}, "substructures.a: RDKit cannot parse 'C=='; correct the SMARTS"),
        ("a", {"a": ""}, "substructures.a: is empty; write a SMARTS"),
        ("a", {"a": " "}, "substructures.a: is empty"),
        ("a", {"a": "[C@H](F)Cl"}, "substructures.a: '[C@H](F)Cl': stereochemistry is not"),
        ("a", {"a": "[$(CC)]"}, "substructures.a: '[$(CC)]': recursive SMARTS are not supported"),
        ("a", {"a": "C.C"}, "substructures.a: 'C.C': fragments are not supported"),
        ("a", {"a": 6}, "substructures.a: expected text, got 6; write it in quotes"),
        ("a and c", {"a": "C"}, "rule: unknown substructure 'c'"),
        ("a", {"a": "C", "b": "N"}, "rule: 'a' does not name substructure 'b'"),
        ("a and not a", {"a": "C"}, "rule: 'a and not a' is never true"),
        ("a or not a", {"a": "C"}, "rule: 'a or not a' is always true"),
        (
            "a or (a and b)", {"a": "C", "b": "N"},
            "rule: 'a or (a and b)' is the same with and without substructure 'b'; remove it",
        ),
        ("a and\nb", {"a": "C", "b": "N"}, "rule: has a line break or a tab"),
        ("a AND b", {"a": "C", "b": "N"}, "rule: 'AND' in 'a AND b': write 'and' in lower case"),
        ("a", {"A": "C"}, "substructures: 'A' is no name"),
        ("a", {f"a{i}": "C" for i in range(9)}, "substructures: expected 1 to 8, got 9"),
    ],
)  # fmt: skip
def test_wrong_substructures_and_rules_are_refused_when_a_recipe_is_read(
    rule: str, smarts: dict[str, Any], message: str
) -> None:
    table = Recipe.load("benzene").to_dict()
    table["params"] |= {"rule": rule, "substructures": smarts}
    with pytest.raises(InputError) as error:
        Recipe.from_dict(table, "mine.toml")
    assert str(error.value).startswith(f"mine.toml: params.{message}")
    assert "\n" not in str(error.value)


def _pool(folder: Path, *smiles: str) -> dict[str, Source]:
    path = folder / "pool.smi"
    path.write_text("\n".join(smiles))
    return {"molecules": Source("pool", path, "")}


@pytest.mark.parametrize(
    ("smarts", "where"),
    [("[Cl]", "none of 3 usable molecules"), ("C", "all of 3 usable molecules")],
)
def test_a_substructure_in_no_molecule_or_in_all_is_named(
    tmp_path: Path, smarts: str, where: str
) -> None:
    sources = _pool(tmp_path, "CCO", "CCN", "CC=O", "C.C")
    recipe = _recipe("a", a=smarts)
    with pytest.raises(InputError) as error:
        make_plan(recipe, 0, 2, sources)
    assert f"substructure 'a' ({smarts}) is in {where}" in str(error.value)
    assert "correct params.substructures.a, or give another pool" in str(error.value)


def test_a_pool_without_usable_molecules_says_why(tmp_path: Path) -> None:
    """The SMARTS are not to blame."""
    recipe = _recipe("carbonyl", carbonyl="C=O")
    with pytest.raises(InputError) as error:
        make_plan(recipe, 0, 2, _pool(tmp_path, "C.C", "x", "C" * 90))
    assert str(error.value).endswith(
        "pool.smi: none of 3 molecules is usable (rejected: SMILES does not parse (1), has more "
        "than 60 heavy atoms (1), more than one fragment (1)); give another pool with --source "
        "molecules=FILE"
    )
    with pytest.raises(InputError, match="change params.min_heavy_atoms or params.max_heavy_"):
        make_plan(recipe, 0, 2, _pool(tmp_path, "C" * 90, "C" * 91))


def test_combinations_that_the_pool_lacks_are_named(tmp_path: Path) -> None:
    table = Recipe.load("logic-7").to_dict() | {"name": "mine"}
    pool = _pool(tmp_path, "FCC=O", "CCC=O", "FCCC", "FCC=O")
    with pytest.raises(InputError) as error:
        make_plan(Recipe.from_dict(table), 0, 2, pool)
    message = str(error.value)
    assert "no usable molecule is 'no carbonyl, no fluoride'; the pool has 0 'no car" in message
    assert "correct params.rule or params.substructures, or give another pool" in message


def _recipe(rule: str, **smarts: str) -> Recipe:
    table: dict[str, Any] = Recipe.load("benzene").to_dict()
    table["params"] |= {"rule": rule, "substructures": smarts}
    return Recipe.from_dict(table | {"name": "mine"})


def test_a_class_that_the_pool_cannot_fill_says_how_many_there_are(tmp_path: Path) -> None:
    sources = _pool(tmp_path, "CCO", "CCCO", "CCN", "CC=O", "CCC", "CCCC=O")
    with pytest.raises(InputError) as error:
        make_plan(_recipe("carbonyl", carbonyl="C=O"), 0, 4, sources)
    message = str(error.value)
    assert "4 graphs needed, 2 possible" in message
    assert "with all classes equally frequent in every size" in message
    assert "the pool has 4 'not carbonyl', 2 'carbonyl'" in message


def test_a_build_from_a_pool_of_ones_own_is_whole(tmp_path: Path) -> None:
    rings = ("C1CC1", "c1ccccc1", "C1CCC1", "c1cccn1C", "C1CCCC1", "c1ccoc1", "c1ccsc1")
    pool = tmp_path / "mine.smi"
    pool.write_text(
        "\n".join(
            f"{ring}{middle}{tail}"
            for ring in rings
            for middle in ("C(O)", "C(=O)")
            for tail in ("C", "F", "CC", "CF")
        )
    )
    recipe = _recipe("carbonyl", carbonyl="C=O")
    sources = {"molecules": pool}
    build(recipe, root=tmp_path, graphs=40, sources=sources, engine="serial", rings=False)
    folder = tmp_path / "mine" / "seed-0"
    assert Manifest.load(folder).graphs == 40
    assert verify(folder, full=True, sources=sources) == []


def test_the_order_of_substructures_in_a_recipe_changes_nothing() -> None:
    table = Recipe.load("logic-10").to_dict()
    smarts = table["params"]["substructures"]
    turned = {name: smarts[name] for name in reversed(smarts)}
    other = Recipe.from_dict(table | {"params": table["params"] | {"substructures": turned}})
    assert other.sha256 == Recipe.load("logic-10").sha256
    molecule = Chem.MolFromSmiles("NCCOCc1ccccc1")
    judgements = [r.generator_object.judge(molecule) for r in (Recipe.load("logic-10"), other)]
    assert judgements[0] == judgements[1]
