from tests.generators.toy_numbers import numbers as numbers
from tests.generators.toy_numbers import numbers_root as numbers_root
from tests.nn.conftest import weights_from_a_seed as weights_from_a_seed
