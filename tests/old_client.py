"""A client of the `mcp` package 1.28, which speaks the protocol before 2026, in an environment of its own."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=json.loads(sys.argv[2]))
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        begun = await session.initialize()
        tools = await session.list_tools()
        answer = await session.call_tool(
            "learn", {"text": "The mole in pier.py is 40 m long.", "type": "gotcha"}
        )
        whole = await session.call_tool("recall", {"question": answer.structuredContent["id"]})
        prompts, resources = await session.list_prompts(), await session.list_resources()
        wrong = await session.call_tool("recall", {"question": "a", "colour": "red"})
        report = {
            "version": begun.protocolVersion,
            "tools": [tool.name for tool in tools.tools],
            "text": whole.structuredContent["results"][0]["text"],
            "prompts": len(prompts.prompts),
            "resources": len(resources.resources),
            "wrong": [wrong.isError, wrong.content[0].text],
        }
        print(json.dumps(report))


asyncio.run(main())
