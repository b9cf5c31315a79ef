"""A client of the protocol's own package, in this process, against the server on a test's store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client as ProtocolClient
from mcp import MCPError

from cortex.flows.context import Context
from cortex.mcp.protocol.client import Client
from cortex.mcp.server import server_of
from cortex.storage.settings.settings import load_settings
from tests.bench import NOW, words_for_a_model

# Where the samples say that their project lies.
SAMPLES_FOLDER = Path("/home/dev/tidepool")
OLD, NEW = "legacy", "2026-07-28"
BOTH = (OLD, NEW)


@dataclass
class Assistant:
    """A program with the memory as tools; `chooses` is what its person answers, None if nobody is."""

    home: Path
    folder: Path
    mode: str = NEW
    chooses: str | None = None
    questions: list[types.ElicitRequestFormParams] = field(default_factory=list)

    @property
    def context(self) -> Context:
        return Context(load_settings(self.home), words_for_a_model, lambda: NOW, self.folder)

    def do(self, work: Callable[[ProtocolClient], Any]) -> Any:
        """Connect, do asynchronous work, disconnect; return what the work returns."""

        async def run() -> Any:
            server = server_of(Client(self.context)).build()
            asked = self._answer if self.chooses is not None else None
            options: Any = {"mode": self.mode, "elicitation_callback": asked, "cache": None}
            async with ProtocolClient(server, **options) as client:
                try:
                    return await work(client)
                except MCPError as error:  # leaving the block would wrap it in groups
                    return error

        result = anyio.run(run)
        if isinstance(result, MCPError):
            raise result
        return result

    def call(self, tool: str, **arguments: Any) -> types.CallToolResult:
        return self.do(lambda client: client.call_tool(tool, arguments))

    def data(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """Return the structured answer of a call that must succeed."""
        result = self.call(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert len(text_of(result)) <= 10_000
        return result.structured_content

    async def _answer(self, context: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        self.questions.append(params)
        if self.chooses == "":
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"choice": self.chooses})


def text_of(result: types.CallToolResult) -> str:
    [block] = result.content
    return block.text


@pytest.fixture
def assistant(samples: Path) -> Assistant:
    """Return an assistant in the samples' project."""
    return Assistant(samples, SAMPLES_FOLDER)


@pytest.fixture
def learner(home: Path, tmp_path: Path) -> Assistant:
    """Return an assistant in a new folder with an empty store."""
    folder = tmp_path / "here"
    folder.mkdir()
    return Assistant(home, folder)
