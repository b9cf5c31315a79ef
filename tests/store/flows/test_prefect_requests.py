"""What the server of Prefect needs of the libraries below it."""

import asyncio
import json

from fastapi import Body, FastAPI


def test_a_null_in_a_request_stands_for_the_default_as_prefects_client_expects():
    """FastAPI from 0.151 on refuses it, and with it `prefect deploy`."""
    app, sent = FastAPI(), list[dict[str, object]]()

    @app.post("/")
    def first(limit: int = Body(5), offset: int = Body(0)) -> int:
        return limit

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": json.dumps({"limit": None, "offset": 1}).encode()}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert (sent[0]["status"], sent[1]["body"]) == (200, b"5")
