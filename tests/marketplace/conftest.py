from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.marketplace.site import Site, serving


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as running:
        yield running
