from tests.nn.conftest import weights_from_a_seed as weights_from_a_seed
