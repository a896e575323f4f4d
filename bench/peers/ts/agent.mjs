// The agent under test on the TypeScript SDK, written as the SDK's example is. The prompt says what a turn does.
import { Readable, Writable } from "node:stream";
import { acp } from "./sdk.mjs";

const { agent: asked, client: tells } = acp.methods;
let sessions = 0;

/** As many bytes as asked for: letters, and every tenth byte a space. */
const filler = (size) => "xxxxxxxxx ".repeat(Math.ceil(size / 10)).slice(0, size);

const text = (text) => ({ type: "text", text });

async function prompt({ params, client }) {
  const { sessionId } = params;
  // The example waits for every update it sends, so `w3` and `w3p` are the same thing here.
  const tell = (update) => client.notify(tells.session.update, { sessionId, update });
  const say = (words) => tell({ sessionUpdate: "agent_message_chunk", content: text(words) });
  const [workload, ...numbers] = params.prompt.find((block) => block.type === "text").text.split(" ");
  const [count, size] = numbers.map(Number);
  switch (workload) {
    case "w3":
    case "w3p": {
      const words = filler(size);
      for (let i = 0; i < count; i++) await say(words);
      break;
    }
    case "w3b": {
      const words = filler(size);
      await tell({ sessionUpdate: "tool_call", toolCallId: "call_1", title: "Work" });
      for (let i = 0; i < count; i++) {
        const content = [{ type: "content", content: text(words) }];
        await tell({ sessionUpdate: "tool_call_update", toolCallId: "call_1", content });
      }
      break;
    }
    case "w6b": {
      const read = () => client.request(tells.fs.readTextFile, { sessionId, path: "/tmp/x" });
      for (let round = 0; round < size; round++) await Promise.all(Array.from({ length: count }, read));
      break;
    }
    case "size": {
      const { resource } = params.prompt.find((block) => block.type === "resource");
      await say(String(Buffer.byteLength(resource.text)));
      break;
    }
    default:
      throw acp.RequestError.invalidParams({ details: `no workload \`${workload}\`` });
  }
  return { stopReason: "end_turn" };
}

const modes = { currentModeId: "a", availableModes: ["a", "b"].map((id) => ({ id, name: id })) };
const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
acp
  .agent({ name: "bench-ts" })
  .onRequest(asked.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { promptCapabilities: { embeddedContext: true } },
  }))
  .onRequest(asked.session.new, () => ({ sessionId: `s${++sessions}`, modes }))
  .onRequest(asked.session.setMode, () => ({}))
  .onRequest(asked.session.prompt, prompt)
  .connect(stream);
