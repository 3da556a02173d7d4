"""R41: FedSGD with Adam, whose memory is the server's. A file of its own, since SGD cannot tell one from the other."""

import numpy as np
import pytest

from oracle.agree_federated import check_fedsgd


@pytest.mark.parametrize("case", range(10))
def test_fedsgd_steps_with_the_servers_adam(case: int) -> None:
    check_fedsgd(np.random.default_rng([9, case]), case, "fedsgd", "adam")
