"""Rules of and, or and not over named substructures; which atoms make one true or false.

A *way* is a set of atoms that settles the rule: what is in it has been seen, and what the molecule
lacks is known to be absent. Whatever else the molecule has may then be ignored. Sets of atoms are
bits of an integer, bit i for atom i.
"""

import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from graphxai_data.errors import nearest

# A name is a word of Python too, so that the prover can read rules with Python's parser.
NAME = re.compile(r"[a-z][a-z0-9_]*")
_TOKEN = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_]*)|([()]))")
_OPERATORS = ("and", "or", "not")
# Sets of atoms on the way to the result; molecules that need more have too many ways to list.
_MAX_SETS = 4096


class TooManyWaysError(Exception):
    """A molecule has so many ways that they are not worth listing."""


@dataclass(frozen=True)
class Expression:
    """A rule or a part of one: a name, or an operation on parts."""

    operation: Literal["name", "not", "and", "or"]
    parts: tuple["Expression", ...] = ()
    name: str = ""

    def names(self) -> set[str]:
        """Return the substructures that occur."""
        return {self.name} - {""} | {name for part in self.parts for name in part.names()}

    def holds(self, present: Collection[str]) -> bool:
        """Return whether the rule is true for molecules with exactly these substructures."""
        if self.operation == "name":
            return self.name in present
        values = [part.holds(present) for part in self.parts]
        if self.operation == "not":
            return not values[0]
        return all(values) if self.operation == "and" else any(values)

    def ways(self, matches: Mapping[str, Sequence[int]], wanted: bool) -> list[int]:
        """Return the minimal sets of atoms that make the rule true, or false, as `wanted`.

        The only one is 0, the empty set, where nothing has to be seen; there is none at all if the
        rule is not as wanted. `matches` has the sets of atoms of every substructure, or none.
        """
        if self.operation == "name":
            if wanted:
                return minimal(matches[self.name])
            return [] if matches[self.name] else [0]
        if self.operation == "not":
            return self.parts[0].ways(matches, not wanted)
        of_parts = [part.ways(matches, wanted) for part in self.parts]
        # By De Morgan, a false "or" is the "and" of false parts.
        if (self.operation == "and") != wanted:
            return minimal([way for ways in of_parts for way in ways])
        sets = [0]
        for ways in of_parts:
            if len(sets) * len(ways) > _MAX_SETS:
                raise TooManyWaysError
            sets = minimal([one | other for one, other in product(sets, ways)])
        return sets


def minimal(sets: Sequence[int]) -> list[int]:
    """Return the sets that have none of the others inside, smallest first, each once.

    >>> minimal([0b110, 0b010, 0b101])
    [2, 5]
    """
    kept: list[int] = []
    for candidate in sorted(set(sets), key=lambda bits: (bits.bit_count(), bits)):
        if all(smaller & candidate != smaller for smaller in kept):
            kept.append(candidate)
    return kept


def parse_rule(text: str, known: Collection[str]) -> Expression:
    """Return the rule; a `ValueError` says what is wrong with it.

    `not` binds stronger than `and`, and `and` stronger than `or`. Every known name has to occur.

    >>> sorted(parse_rule("a and not (b or c)", ["a", "b", "c"]).names())
    ['a', 'b', 'c']
    """
    tokens = _tokens(text)
    if not tokens:
        raise ValueError("rule: is empty; name a substructure")
    rule = _disjunction(tokens, text)
    if tokens and tokens[0] == ")":
        raise ValueError(f"rule: a ) in '{text}' has no ( before it; remove it")
    if tokens:
        raise _missing_operator(tokens[0], text)
    for name in sorted(rule.names() - set(known)):
        raise ValueError(f"rule: unknown substructure '{name}'; {nearest(name, known)}")
    for name in sorted(set(known) - rule.names()):
        raise ValueError(f"rule: '{text}' does not name substructure '{name}'; use or remove it")
    return rule


def combinations(rule: Expression, names: Sequence[str]) -> list[bool]:
    """Return whether the rule holds, for every combination of names: bit i of its number is name i.

    >>> combinations(parse_rule("a and not b", "ab"), "ab")
    [False, True, False, False]
    """
    return [
        rule.holds([name for i, name in enumerate(names) if number >> i & 1])
        for number in range(2 ** len(names))
    ]


def check_decisive(text: str, rule: Expression, names: Sequence[str]) -> None:
    """Raise a `ValueError` if a rule is always true, or never, or if a name in it never matters."""
    holds = combinations(rule, names)
    if all(holds) or not any(holds):
        always = "always true" if holds[0] else "never true"
        raise ValueError(f"rule: '{text}' is {always}, whatever a molecule has; correct it")
    for i, name in enumerate(names):
        if all(value == holds[number ^ 1 << i] for number, value in enumerate(holds)):
            raise ValueError(
                f"rule: '{text}' is the same with and without substructure '{name}'; remove it "
                "from the rule and from substructures"
            )


def check_name(name: str) -> None:
    """Raise a `ValueError` unless a rule can use the name."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ValueError(
            f"substructures: '{name}' is no name; use a-z, 0-9 and _, and not and, or, not"
        )


def _tokens(text: str) -> list[str]:
    if not text.isprintable():
        raise ValueError("rule: has a line break or a tab; write it in one line, with spaces")
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(
                f"rule: '{text[at:].strip()[0]}' in '{text}' is not allowed; use names, and, or, "
                "not, and parentheses"
            )
        word = match.group().strip()
        if word != word.lower() and word.lower() in _OPERATORS:
            raise ValueError(f"rule: '{word}' in '{text}': write '{word.lower()}' in lower case")
        tokens.append(word)
        at = match.end()
    return tokens


def _missing_operator(word: str, text: str) -> ValueError:
    return ValueError(f"rule: an operator is missing before '{word}' in '{text}'; write and or or")


def _disjunction(tokens: list[str], text: str) -> Expression:
    """Return the parts that `or` joins, or the only one; what is read leaves the tokens."""
    return _chain(tokens, text, "or")


def _chain(tokens: list[str], text: str, operation: Literal["and", "or"]) -> Expression:
    parts = []
    while True:
        parts.append(_chain(tokens, text, "and") if operation == "or" else _single(tokens, text))
        if not tokens or tokens[0] != operation:
            return parts[0] if len(parts) == 1 else Expression(operation, tuple(parts))
        tokens.pop(0)


def _single(tokens: list[str], text: str) -> Expression:
    negations = 0
    while tokens and tokens[0] == "not":
        tokens.pop(0)
        negations += 1
    word = tokens.pop(0) if tokens else ""
    if word == "(":
        part = _disjunction(tokens, text)
        if not tokens:
            raise ValueError(f"rule: a parenthesis in '{text}' is not closed; add )")
        if (end := tokens.pop(0)) != ")":
            raise _missing_operator(end, text)
    elif word in ("", ")", "and", "or"):
        where = f"before '{word}' in" if word else "at the end of"
        raise ValueError(f"rule: a name is missing {where} '{text}'; add it")
    else:
        part = Expression("name", name=word)
    for _ in range(negations):
        part = Expression("not", (part,))
    return part
