"""Changes to valid files, of the kinds that damage and malice make."""

import random

# Lengths and counts that readers trip over.
NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**40, 2**63 - 1, 2**64 - 1)


def mutated(image: bytes, draws: random.Random) -> bytes:
    """One to four changes: bits, bytes, lengths, pieces cut, doubled, swapped or put elsewhere."""
    content = bytearray(image)
    for _ in range(draws.choice((1, 1, 1, 2, 4))):
        _change(content, draws)
    return bytes(content)


def _change(content: bytearray, draws: random.Random) -> None:
    size = len(content)
    if size == 0:
        content += draws.randbytes(draws.randrange(1, 20))
        return
    at = draws.randrange(size)
    length = draws.randrange(1, min(64, size) + 1)
    kind = draws.randrange(8)
    if kind <= 1:
        content[at] ^= 1 << draws.randrange(8)
    elif kind == 2:
        content[at] = draws.choice((0, 9, 10, 32, 44, 45, 46, 48, 57, 127, 128, 255))
    elif kind == 3:
        width = draws.choice((1, 2, 4, 8))
        number = draws.choice(NUMBERS) % 256**width
        content[at : at + width] = number.to_bytes(width, draws.choice(("little", "big")))
    elif kind == 4:
        del content[at:]
    elif kind == 5:
        del content[at : at + length]
    elif kind == 6:
        other = draws.randrange(size)
        content[at:at] = content[other : other + length] * draws.choice((1, 2, 50))
    else:
        other = draws.randrange(size)
        one, two = content[at : at + length], content[other : other + length]
        content[at : at + len(two)] = two
        content[other : other + len(one)] = one
