"""Rules over substructures: their text, and the minimal ways to settle them."""

import ast
import re
from itertools import chain, combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphxai_data.generators import smarts_proof
from graphxai_data.generators.smarts_rule import (
    Expression,
    TooManyWaysError,
    check_decisive,
    check_name,
    minimal,
    parse_rule,
)
from graphxai_data.generators.smarts_rule import combinations as truth_table

NAMES = ("a", "b", "c")
ATOMS = 5

rules = st.recursive(
    st.sampled_from(NAMES),
    lambda inner: st.one_of(
        inner.map("not ({})".format),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: "({}) {} ({})".format(*parts)
        ),
    ),
    max_leaves=6,
)
# Up to three matches of each substructure, as sets of at most five atoms.
all_matches = st.fixed_dictionaries({
    name: st.lists(st.integers(1, 2**ATOMS - 1), max_size=3, unique=True) for name in NAMES
})  # fmt: skip


def _parsed(text: str) -> Expression:
    used = [name for name in NAMES if name in text.replace("and", "")]
    return parse_rule(text, used)


def _settled(rule: Expression, seen: set[str], absent: set[str]) -> bool | None:
    """Return the truth of a rule that what is neither seen nor absent cannot change, or None."""
    if rule.operation == "name":
        return True if rule.name in seen else False if rule.name in absent else None
    values = [_settled(part, seen, absent) for part in rule.parts]
    if rule.operation == "not":
        return None if values[0] is None else not values[0]
    if rule.operation == "and":
        return False if False in values else None if None in values else True
    return True if True in values else None if None in values else False


def _brute_force(rule: Expression, matches: dict[str, list[int]]) -> set[int]:
    """Return the minimal ways among the unions of all subsets of all matches."""
    pairs = [(name, match) for name in matches for match in matches[name]]
    absent = {name for name in matches if not matches[name]}
    subsets = chain.from_iterable(combinations(pairs, size) for size in range(len(pairs) + 1))
    unions = set()
    for subset in subsets:
        if _settled(rule, {name for name, _ in subset}, absent) is not None:
            union = 0
            for _, match in subset:
                union |= match
            unions.add(union)
    return {way for way in unions if not any(o != way and o & way == o for o in unions)}


@given(text=rules, matches=all_matches)
@settings(max_examples=150, deadline=None)
def test_ways_are_the_minimal_sets_of_atoms_that_settle_the_rule(
    text: str, matches: dict[str, list[int]]
) -> None:
    rule = _parsed(text)
    label = rule.holds([name for name in NAMES if matches[name]])
    ways = rule.ways(matches, label)
    assert len(ways) == len(set(ways))
    assert set(ways) == _brute_force(rule, matches)
    assert rule.ways(matches, not label) == []


@given(text=rules, matches=all_matches)
@settings(max_examples=150, deadline=None)
def test_the_prover_derives_the_same_ways_by_other_means(
    text: str, matches: dict[str, list[int]]
) -> None:
    rule = _parsed(text)
    label = rule.holds([name for name in NAMES if matches[name]])
    sets = {
        name: {frozenset(i for i in range(ATOMS) if match >> i & 1) for match in of_name}
        for name, of_name in matches.items()
    }
    python = ast.parse(text, mode="eval").body
    expected = smarts_proof.minimal_ways(python, sets)
    ways = [way for way in rule.ways(matches, label) if way]
    assert {frozenset(i for i in range(ATOMS) if way >> i & 1) for way in ways} == expected
    assert smarts_proof.truth(python, {name: bool(sets[name]) for name in NAMES}) is label


@given(text=rules)
@settings(max_examples=100, deadline=None)
def test_a_rule_means_what_it_means_in_python(text: str) -> None:
    rule = _parsed(text)
    for values in product([False, True], repeat=len(NAMES)):
        named = dict(zip(NAMES, values, strict=True))
        expected = eval(text, {"__builtins__": {}}, named)  # noqa: S307  # of our own making
        assert rule.holds([name for name in NAMES if named[name]]) is expected


def test_not_binds_stronger_than_and_and_and_stronger_than_or() -> None:
    rule = parse_rule("not a and b or c", NAMES)
    assert rule == parse_rule("((not a) and b) or c", NAMES)
    assert [number for number, holds in enumerate(truth_table(rule, NAMES)) if holds] == [
        0b010, 0b100, 0b101, 0b110, 0b111,
    ]  # fmt: skip


def test_ways_of_the_rules_of_the_issue() -> None:
    """Worked out by hand: one atom per match, a = {0} and {1}, b = {2}."""
    matches = {"a": [0b001, 0b010], "b": [0b100]}
    assert parse_rule("a and b", "ab").ways(matches, True) == [0b101, 0b110]
    assert parse_rule("a or b", "ab").ways(matches, True) == [0b001, 0b010, 0b100]
    # A negative of "not a" shows a; a negative of "a" has nothing to show.
    assert parse_rule("not a", "a").ways(matches, False) == [0b001, 0b010]
    assert parse_rule("a", "a").ways({"a": []}, False) == [0]
    assert parse_rule("a and not b", "ab").ways(matches, False) == [0b100]


def test_minimal_keeps_no_set_with_another_inside() -> None:
    assert minimal([0b111, 0b011, 0b011, 0b100]) == [0b100, 0b011]
    assert minimal([0b1, 0]) == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a and d", "unknown substructure 'd'"),
        ("a and b", "does not name substructure 'c'"),
        ("a and", "a name is missing at the end"),
        ("", "rule: is empty; name a substructure"),
        ("()", r"a name is missing before '\)' in '\(\)'"),
        ("(a or b", "not closed"),
        ("or a", "a name is missing before 'or' in 'or a'"),
        ("a b", "an operator is missing before 'b' in 'a b'; write and or or"),
        ("(a b) or c", r"an operator is missing before 'b' in '\(a b\) or c'"),
        ("a not b", "an operator is missing before 'not' in 'a not b'"),
        ("a Or b", "'Or' in 'a Or b': write 'or' in lower case"),
        ("NOT a", "write 'not' in lower case"),
        ("a and\nb", "rule: has a line break or a tab"),
        ("a\n", "rule: has a line break or a tab"),
        ("a & b", "'&' in 'a & b' is not allowed"),
        ("a)", r"a \) in 'a\)' has no \( before it; remove it"),
    ],
)
def test_a_wrong_rule_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_rule(text, NAMES)


@pytest.mark.parametrize(
    ("text", "always"),
    [("a and not a", "never"), ("a or not a", "always"), ("not (a or not a)", "never")],
)
def test_a_rule_that_cannot_be_otherwise_is_refused(text: str, always: str) -> None:
    with pytest.raises(ValueError, match=f"rule: '{re.escape(text)}' is {always} true"):
        check_decisive(text, parse_rule(text, "a"), "a")


@given(text=rules)
@settings(max_examples=100, deadline=None)
def test_a_name_that_never_matters_is_refused(text: str) -> None:
    rule, used = _parsed(text), sorted(_parsed(text).names())
    sets = [set(chosen) for size in range(4) for chosen in combinations(used, size)]
    matters = {n for n in used for s in sets if rule.holds(s | {n}) != rule.holds(s - {n})}
    if matters == set(used):
        check_decisive(text, rule, used)
        return
    expected = f"without substructure '{min(set(used) - matters)}'" if matters else "true"
    with pytest.raises(ValueError, match=expected):
        check_decisive(text, rule, used)


@pytest.mark.parametrize("name", ["and", "C", "a-b", "1a", "", "a b"])
def test_a_name_that_rules_cannot_use_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name"):
        check_name(name)


def test_far_too_many_ways_are_not_listed() -> None:
    matches = {name: [1 << (i + 70 * k) for i in range(70)] for k, name in enumerate(NAMES)}
    with pytest.raises(TooManyWaysError):
        parse_rule("a and b and c", NAMES).ways(matches, True)
