"""Native code has to be possible here: where it is not, its tests are skipped, and say why."""

from __future__ import annotations

import pytest

from graphs.errors import GraphError
from static.call import backend


@pytest.fixture(autouse=True, scope="session")
def native_code():
    try:
        backend.choose_backend("native")
    except GraphError as error:
        pytest.skip(str(error))
