"""Read many changed files in a process of its own, with bounds on memory and time.

    runner.py SEED TARGET=COUNT …

Prints the number of the example before it is read, and at the end of a target how many were
refused. Whatever is not one of the package's own errors ends the process; so do 20 seconds for one
file.
"""

import logging
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

from graphxai_data.errors import GraphXAIDataError
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import TARGETS

ROOM = 3 << 29  # 1.5 GiB beyond what the imports take


def bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (-1, resource.getrlimit(resource.RLIMIT_AS)[1]))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, -1))


def main(target: str, seed: int, count: int) -> int:
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as name:
        paths, read = TARGETS[target](Path(name))
        whole = {path: path.read_bytes() for path in paths}
        for path in paths:  # what is whole is read
            read(path)
        bound_memory()
        refused = 0
        for i in range(count):
            draws = random.Random(f"{target} {seed} {i}")  # noqa: S311
            for path, content in whole.items():
                path.write_bytes(content)
            path = draws.choice(paths)
            path.write_bytes(mutated(whole[path], draws))
            print(i, flush=True)
            signal.alarm(20)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    read(path)
            except GraphXAIDataError as error:
                refused += 1
                if len(str(error)) > 5000:
                    print(f"example {i}: a message of {len(str(error))} letters", file=sys.stderr)
                    return 1
            except BaseException:
                print(f"example {i}: {traceback.format_exc()}", file=sys.stderr)
                return 1
            signal.alarm(0)
    print("refused", target, refused, flush=True)
    return 0


if __name__ == "__main__":
    for argument in sys.argv[2:]:
        name, _, count = argument.partition("=")
        if main(name, int(sys.argv[1]), int(count)):
            sys.exit(1)
