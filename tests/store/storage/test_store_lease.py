"""Claims about the lease of a local store: who only asks is no run, and a second run is refused."""

import threading

import pytest

from cortex.storage.remote.store_lease import is_free, lease
from cortex.transforms.errors import StoreBusy


def test_a_run_may_start_while_others_ask_whether_one_does(home):
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            is_free(home)

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    try:
        for _ in range(30):
            with lease(home):
                pass
    finally:
        is_over.set()
        for asker in askers:
            asker.join()


def test_a_second_run_is_refused_and_the_lease_is_seen_to_be_held(home):
    assert is_free(home)
    with lease(home):
        assert not is_free(home)
        with pytest.raises(StoreBusy), lease(home):
            pass
    assert is_free(home)
