// An agent on the TypeScript SDK for both versions: asks for permission, reads a file where it can, says what came of it.
// A prompt of lines `read PATH`, `write PATH TEXT`, `run COMMAND` and `slowly` is done line by line, see worker.mjs.
// Where PORT is given, it is served there over HTTP and WebSocket, else on stdin and stdout.
import { createServer } from "node:http";
import { Readable, Writable } from "node:stream";
import { part, sdk, ws } from "./sdk.mjs";
import { ownHands, stepsOf, work } from "./worker.mjs";

const v1 = await sdk(1);
const v2 = await sdk(2);
const options = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
const values = [
  { value: "calm", name: "Calm" },
  { value: "quick", name: "Quick" },
];
const cancelled = new Set();
let mode = "calm";
const wait = () => new Promise((resolve) => setTimeout(resolve, 20));

const old = v1.agent({ name: "interop-ts" });
const configV1 = () => [{ id: "mode", name: "Mode", category: "mode", type: "select", currentValue: mode, options: values }];
old.onRequest(v1.methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }));
old.onRequest(v1.methods.agent.session.new, () => ({ sessionId: "s1", configOptions: configV1() }));
old.onRequest(v1.methods.agent.session.setConfigOption, ({ params }) => {
  mode = params.value;
  return { configOptions: configV1() };
});
old.onNotification(v1.methods.agent.session.cancel, ({ params }) => void cancelled.add(params.sessionId));
old.onRequest(v1.methods.agent.session.prompt, async ({ params, client }) => {
  const { sessionId } = params;
  const tell = (update) => client.notify(v1.methods.client.session.update, { sessionId, update });
  const say = (text) => tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  const steps = stepsOf(params.prompt[0].text);
  if (steps.length) {
    const call = (method, more) => client.request(method, { sessionId, ...more });
    const { fs, terminal } = v1.methods.client;
    const stopReason = await work(steps, {
      say,
      begin: (toolCall) => tell({ sessionUpdate: "tool_call", ...toolCall }),
      change: (toolCall) => tell({ sessionUpdate: "tool_call_update", ...toolCall }),
      diff: (path, newText) => ({ type: "diff", path, newText }),
      ask: (toolCall) => call(v1.methods.client.session.requestPermission, { toolCall, options }),
      isCancelled: () => cancelled.has(sessionId),
      read: async (path) => (await call(fs.readTextFile, { path })).content,
      write: (path, content) => call(fs.writeTextFile, { path, content }),
      run: async (command) => {
        const { terminalId } = await call(terminal.create, { command: "sh", args: ["-c", command] });
        const { exitCode } = await call(terminal.waitForExit, { terminalId });
        await call(terminal.release, { terminalId });
        return exitCode === 0;
      },
    });
    return { stopReason };
  }
  const toolCall = { toolCallId: "t1", title: "Read it", kind: "read", status: "pending" };
  await tell({ sessionUpdate: "tool_call", ...toolCall });
  const asked = await client.request(v1.methods.client.session.requestPermission, { sessionId, toolCall, options });
  if (asked.outcome.outcome === "cancelled") {
    while (!cancelled.has(sessionId)) await wait();
    return { stopReason: "cancelled" };
  }
  if (asked.outcome.optionId === "yes") {
    const path = params.prompt[0].text;
    const file = await client.request(v1.methods.client.fs.readTextFile, { sessionId, path, line: 2, limit: 1 });
    await say(`read ${JSON.stringify(file.content)} in mode ${mode}`);
    await tell({ sessionUpdate: "tool_call_update", toolCallId: "t1", status: "completed" });
  } else {
    await say("rejected");
    await tell({ sessionUpdate: "tool_call_update", toolCallId: "t1", status: "failed" });
  }
  return { stopReason: "end_turn" };
});

const now = v2.agent({ name: "interop-ts" });
const configV2 = () => configV1().map(({ id, ...option }) => ({ configId: id, ...option }));
const info = { name: "interop-ts", version: "1" };
now.onRequest(v2.methods.agent.initialize, () => ({ protocolVersion: 2, info, capabilities: { session: {} } }));
now.onRequest(v2.methods.agent.session.new, () => ({ sessionId: "s2", configOptions: configV2() }));
now.onRequest(v2.methods.agent.session.setConfigOption, ({ params }) => {
  mode = params.value;
  return { configOptions: configV2() };
});
now.onNotification(v2.methods.agent.session.cancel, ({ params }) => void cancelled.add(params.sessionId));
now.onRequest(v2.methods.agent.session.prompt, ({ params, client }) => {
  const { sessionId } = params;
  const tell = (update) => client.notify(v2.methods.client.session.update, { sessionId, update });
  const turn = async () => {
    await wait();
    await tell({ sessionUpdate: "user_message", messageId: "m1", content: params.prompt });
    await tell({ sessionUpdate: "state_update", state: "running" });
    const steps = stepsOf(params.prompt[0].text);
    if (steps.length) {
      const change = (toolCall) => tell({ sessionUpdate: "tool_call_update", ...toolCall });
      const stopReason = await work(steps, {
        say: (text) => tell({ sessionUpdate: "agent_message_chunk", messageId: "m2", content: { type: "text", text } }),
        begin: change,
        change,
        diff: (path) => ({ type: "diff", changes: [{ operation: "modify", path }] }),
        ask: (toolCall) => {
          const question = { sessionId, title: toolCall.title, subject: { type: "tool_call", toolCall }, options };
          return client.request(v2.methods.client.session.requestPermission, question);
        },
        isCancelled: () => cancelled.has(sessionId),
        ...ownHands,
      });
      await tell({ sessionUpdate: "state_update", state: "idle", stopReason });
      return;
    }
    const toolCall = { toolCallId: "t1", title: "Think about it", kind: "think", status: "pending" };
    await tell({ sessionUpdate: "tool_call_update", ...toolCall });
    await tell({ sessionUpdate: "state_update", state: "requires_action" });
    const subject = { type: "tool_call", toolCall };
    const question = { sessionId, title: "May I?", subject, options };
    const asked = await client.request(v2.methods.client.session.requestPermission, question);
    let stopReason = "end_turn";
    if (asked.outcome.outcome === "cancelled") {
      while (!cancelled.has(sessionId)) await wait();
      stopReason = "cancelled";
    } else {
      await tell({ sessionUpdate: "state_update", state: "running" });
      const text = asked.outcome.optionId === "yes" ? `allowed in mode ${mode}` : "rejected";
      await tell({ sessionUpdate: "agent_message_chunk", messageId: "m2", content: { type: "text", text } });
      await tell({ sessionUpdate: "tool_call_update", toolCallId: "t1", status: "completed" });
    }
    await tell({ sessionUpdate: "state_update", state: "idle", stopReason });
  };
  turn().catch((error) => process.stderr.write(`${error}\n`));
  return { messageId: "m1" };
});

const agent = v2.agentProtocolRouter().withV1(old).withV2(now);
if (process.env.PORT) {
  const { AcpServer } = await part("server");
  const { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } = await part("node");
  const { WebSocketServer } = ws();
  const server = new AcpServer({ agent });
  const http = createServer(createNodeHttpHandler(server));
  http.on("upgrade", createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true })));
  http.listen(Number(process.env.PORT), "127.0.0.1");
} else {
  agent.connect(v1.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}
