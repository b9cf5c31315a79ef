// A client of the protocol's TypeScript package: lists the tools, stores a lesson and recalls it.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, environment] = process.argv.slice(2);
const client = new Client({ name: "probe", version: "1.0" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args: ["mcp"], env: JSON.parse(environment) }));
const { tools } = await client.listTools();
const learned = await client.callTool({
  name: "learn",
  arguments: { text: "The mole in pier.py is 40 m long.", type: "gotcha" },
});
const whole = await client.callTool({ name: "recall", arguments: { question: learned.structuredContent.id } });
const wrong = await client.callTool({ name: "recall", arguments: { question: "a", colour: "red" } });
const text = whole.structuredContent.results[0].text;
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), text, wrong: wrong.isError }));
await client.close();
