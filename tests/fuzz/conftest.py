"""What the fuzz tests share."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
