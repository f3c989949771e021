from tests.generators.toy_numbers import numbers as numbers
from tests.generators.toy_numbers import numbers_root as numbers_root
