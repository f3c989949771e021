"""Read many changed files with limits on memory and time; to be run in a process of its own.

Prints the number of each example before reading it, and after each target how many files were
refused. Any error that is not one of the package's own ends the process; so do 20 seconds for one
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
from tests.fuzz.mutate import mutate
from tests.fuzz.targets import TARGETS

EXTRA_MEMORY = 3 << 29  # 1.5 GiB more than the imports take


def limit_memory() -> None:
    """Let this process take at most `EXTRA_MEMORY` more than it has now."""
    resource.setrlimit(resource.RLIMIT_AS, (-1, resource.getrlimit(resource.RLIMIT_AS)[1]))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + EXTRA_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, -1))


def read_changed_files(target: str, count: int, seed: int) -> None:
    """Read `count` changed files of a target; exit with code 1 if one is not handled well."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as name:
        paths, read = TARGETS[target](Path(name))
        valid = {path: path.read_bytes() for path in paths}
        for path in paths:
            read(path)
        limit_memory()
        refused = 0
        for i in range(count):
            draws = random.Random(f"{target} {seed} {i}")  # noqa: S311
            for path, content in valid.items():
                if path.read_bytes() != content:  # reading may have changed other files
                    path.write_bytes(content)
            path = draws.choice(paths)
            path.write_bytes(mutate(valid[path], draws))
            print(i, flush=True)
            signal.alarm(20)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    read(path)
            except GraphXAIDataError as error:
                refused += 1
                if len(str(error)) > 5000:
                    sys.exit(f"example {i}: a message of {len(str(error))} letters")
            except BaseException:
                sys.exit(f"example {i}: {traceback.format_exc()}")
            signal.alarm(0)
    print("refused", target, refused, flush=True)
