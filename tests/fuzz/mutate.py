"""Random changes to valid files, as by damage or an attacker."""

import random

# Lengths and counts that readers often handle wrongly.
NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**40, 2**63 - 1, 2**64 - 1)


def mutate(original: bytes, draws: random.Random) -> bytes:
    """Return a copy with one to four changes: to bits, bytes or numbers, or to whole pieces."""
    content = bytearray(original)
    for _ in range(draws.choice((1, 1, 1, 2, 4))):
        _change(content, draws)
    return bytes(content)


def _change(content: bytearray, draws: random.Random) -> None:
    size = len(content)
    if size == 0:
        content += draws.randbytes(draws.randrange(1, 20))
        return
    start = draws.randrange(size)
    length = draws.randrange(1, min(64, size) + 1)
    kind = draws.randrange(8)
    if kind <= 1:
        content[start] ^= 1 << draws.randrange(8)
    elif kind == 2:
        content[start] = draws.choice((0, 9, 10, 32, 44, 45, 46, 48, 57, 127, 128, 255))
    elif kind == 3:
        width = draws.choice((1, 2, 4, 8))
        number = draws.choice(NUMBERS) % 256**width
        content[start : start + width] = number.to_bytes(width, draws.choice(("little", "big")))
    elif kind == 4:
        del content[start:]
    elif kind == 5:
        del content[start : start + length]
    elif kind == 6:
        other = draws.randrange(size)
        content[start:start] = content[other : other + length] * draws.choice((1, 2, 50))
    else:
        other = draws.randrange(size)
        first, second = content[start : start + length], content[other : other + length]
        content[start : start + len(second)] = second
        content[other : other + len(first)] = first
