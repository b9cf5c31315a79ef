"""What a server does while nobody calls, and what its start costs."""

import gc
from collections import Counter

import anyio
import pydantic
import pytest

from cortex.mcp.protocol import idle_release
from cortex.mcp.protocol.client import Client
from cortex.mcp.protocol.idle_release import IdleTimer, SharedModel, quick_imports, release_model
from cortex.storage.settings.settings import Settings


def test_quick_imports_leave_pydantic_and_the_collector_as_they_were():
    before = dict(pydantic.BaseModel.model_config)
    with pytest.raises(KeyError), quick_imports():

        class Late(pydantic.BaseModel):
            number: int

        assert not gc.isenabled()
        raise KeyError
    gc.unfreeze()
    assert gc.isenabled() and dict(pydantic.BaseModel.model_config) == before
    assert Late(number="5").number == 5  # built when it is first used, and no less strict
    with pytest.raises(pydantic.ValidationError):
        Late(number="five")


def test_memory_is_given_back_after_a_call_and_the_model_after_a_while(monkeypatch):
    done = Counter()
    monkeypatch.setattr(idle_release, "trim_heap", lambda: done.update(["memory"]))
    watched = IdleTimer(lambda: done.update(["model"]), quiet_s=0.02, idle_s=0.1)

    async def run():
        async with watched.watching():
            await anyio.sleep(0.2)
            assert +done == Counter()  # nothing was called yet
            watched.note_call()
            with anyio.fail_after(20):
                while not done["memory"]:
                    await anyio.sleep(0.01)
                while done != {"memory": 2, "model": 1}:
                    await anyio.sleep(0.01)
            await anyio.sleep(0.2)
            assert done == {"memory": 2, "model": 1}  # once

    anyio.run(run)


def test_a_model_is_loaded_once_for_all_clients_and_again_after_it_was_released(assistant):
    loaded = []
    settings = Settings(assistant.home)
    shared = SharedModel(lambda _: loaded.append(1) or len(loaded))
    from dataclasses import replace

    context = replace(assistant.context, embedder_of=shared)
    clients = [Client(context), Client(context)]
    assert [client.context().embedder_of(settings) for client in clients] == [1, 1]
    release_model(clients[0].base)
    assert clients[1].context().embedder_of(settings) == 2
