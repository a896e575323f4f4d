// A small agent on the TypeScript SDK for both versions, for `attache check agent --script brackets`: what its author decides keeps
// to the protocol as far as that is easy, so that what is found is mostly the SDK's.
// It does what stands in brackets: `[[say T]]`, `[[read P]]`, `[[write P T]]`, `[[shell C]]`, `[[slow N S]]`, `[[refuse]]`, `[[maxtokens]]`.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { Readable, Writable } from "node:stream";
import { sdk } from "./sdk.mjs";

const v1 = await sdk(1);
const v2 = await sdk(2);
const version = "2.4.0";
const options = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
const STOPS = { refuse: "refusal", maxtokens: "max_tokens" };
const KINDS = { read: "read", write: "edit", shell: "execute" };

/** The sessions: in each, what ends its turn. */
const sessions = new Map();

function open({ cwd }) {
  if (!isAbsolute(cwd)) throw new v1.RequestError(-32602, "`cwd` is not absolute");
  const sessionId = randomUUID();
  sessions.set(sessionId, { cwd, turns: new Set(), last: Promise.resolve(), said: [] });
  return { sessionId };
}

/** Refuses what the agent does not offer to take. */
function accept(servers, blocks = []) {
  if (servers?.length) throw new v1.RequestError(-32602, "MCP servers are not supported");
  const strange = blocks.find(({ type }) => type !== "text" && type !== "resource_link");
  if (strange) throw new v1.RequestError(-32602, `Content of type ${strange.type} is not supported`);
}

function session({ sessionId }) {
  const found = sessions.get(sessionId);
  if (!found) throw new v1.RequestError(-32002, "There is no such session", { sessionId });
  return found;
}

function cancel({ sessionId }) {
  sessions.get(sessionId)?.turns.forEach((turn) => turn.abort());
}

const stepsOf = (prompt) => [...prompt.map((block) => block.text ?? "").join("\n").matchAll(/\[\[(\w+)(?:\s+(.*?))?\]\]/gs)];

/** Waits for something, unless the turn is cancelled before. */
const unless = (signal, work) =>
  Promise.race([
    work,
    new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    }),
  ]);

/** Does the steps, with the hands that the client lends or the agent's own, and returns the stop reason. */
async function turn(steps, signal, hands) {
  let stop = "end_turn";
  try {
    for (const [, verb, text = ""] of steps) {
      if (verb === "say") await hands.say(text);
      if (verb === "slow") {
        for (let word = 0; word < parseInt(text, 10); word += 1) {
          await hands.say(`word ${word} `);
          await unless(signal, new Promise((resolve) => setTimeout(resolve, 100)));
        }
      }
      stop = STOPS[verb] ?? stop;
      if (KINDS[verb]) await act(verb, text, signal, hands);
    }
    if (!steps.length) await hands.say("Hello.");
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return signal.aborted ? "cancelled" : stop;
}

async function act(verb, text, signal, hands) {
  const [, path, content] = /^(\S*)\s?(.*)$/s.exec(text);
  const toolCall = { toolCallId: randomUUID(), title: `${verb} ${path}`, name: verb, kind: KINDS[verb], status: "pending" };
  if (verb !== "shell") toolCall.locations = [{ path }];
  await hands.begin(toolCall);
  const change = (status) => hands.change({ toolCallId: toolCall.toolCallId, status });
  if (verb !== "read") {
    const { outcome } = await unless(signal, hands.ask(toolCall));
    if (outcome.outcome === "cancelled" || outcome.optionId !== "yes") {
      await change("failed");
      return;
    }
  }
  await change("in_progress");
  try {
    await unless(signal, hands[verb](verb === "shell" ? text : path, content, signal));
    await change("completed");
  } catch (error) {
    await change("failed");
    if (signal.aborted) throw error;
  }
}

const own = {
  read: (path) => readFile(path, "utf8"),
  write: (path, content) => writeFile(path, content),
  shell: (command, _, signal) => new Promise((resolve) => execFile("sh", ["-c", command], { signal }, resolve)),
};

const old = v1.agent({ name: "small-ts" });
let offered = {};
old.onRequest(v1.methods.agent.initialize, ({ params }) => {
  offered = params.clientCapabilities ?? {};
  return { protocolVersion: 1, agentCapabilities: {}, agentInfo: { name: "small-ts", version } };
});
old.onRequest(v1.methods.agent.session.new, ({ params }) => open(params));
old.onNotification(v1.methods.agent.session.cancel, ({ params }) => cancel(params));
old.onRequest(v1.methods.agent.session.prompt, async ({ params, client }) => {
  const { sessionId } = params;
  const { turns } = session(params);
  accept([], params.prompt);
  const aborter = new AbortController();
  const tell = (update) => client.notify(v1.methods.client.session.update, { sessionId, update });
  const call = (method, more) => client.request(method, { sessionId, ...more });
  const { fs } = v1.methods.client;
  const hands = {
    ...own,
    say: (text) => tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
    begin: (toolCall) => tell({ sessionUpdate: "tool_call", ...toolCall }),
    change: (toolCall) => tell({ sessionUpdate: "tool_call_update", ...toolCall }),
    ask: (toolCall) => call(v1.methods.client.session.requestPermission, { toolCall, options }),
  };
  if (offered.fs?.readTextFile) hands.read = (path) => call(fs.readTextFile, { path });
  if (offered.fs?.writeTextFile) hands.write = (path, content) => call(fs.writeTextFile, { path, content });
  turns.add(aborter);
  try {
    return { stopReason: await turn(stepsOf(params.prompt), aborter.signal, hands) };
  } finally {
    turns.delete(aborter);
  }
});

const now = v2.agent({ name: "small-ts" });
const info = { name: "small-ts", version };
now.onRequest(v2.methods.agent.initialize, () => ({ protocolVersion: 2, info, capabilities: { session: {} } }));
now.onRequest(v2.methods.agent.session.new, ({ params }) => (accept(params.mcpServers), open(params)));
now.onRequest(v2.methods.agent.session.list, ({ params }) => {
  if (params.cursor != null) throw new v1.RequestError(-32602, "There is no such cursor");
  const all = [...sessions].map(([sessionId, { cwd }]) => ({ sessionId, cwd }));
  return { sessions: all.filter(({ cwd }) => params.cwd == null || params.cwd === cwd) };
});
now.onRequest(v2.methods.agent.session.resume, async ({ params, client }) => {
  const { said, turns } = session(params);
  const { sessionId, replayFrom } = params;
  if (replayFrom && replayFrom.type !== "start") throw new v1.RequestError(-32602, "There is no such place");
  const tell = (update) => client.notify(v2.methods.client.session.update, { sessionId, update });
  for (const update of replayFrom ? said : []) await tell(update);
  await tell({ sessionUpdate: "state_update", state: turns.size ? "running" : "idle" });
  return {};
});
now.onRequest(v2.methods.agent.session.close, async ({ params }) => {
  const found = sessions.get(params.sessionId);
  cancel(params);
  await found?.last;
  sessions.delete(params.sessionId);
  return {};
});
now.onNotification(v2.methods.agent.session.cancel, ({ params }) => cancel(params));
now.onRequest(v2.methods.agent.session.prompt, ({ params, client }) => {
  const { sessionId, prompt } = params;
  const found = session(params);
  const { turns, said } = found;
  accept([], prompt);
  const messageId = randomUUID();
  const answerId = randomUUID();
  const aborter = new AbortController();
  const tell = (update) => {
    if (update.sessionUpdate !== "state_update") said.push(update);
    return client.notify(v2.methods.client.session.update, { sessionId, update });
  };
  const change = (toolCall) => tell({ sessionUpdate: "tool_call_update", ...toolCall });
  const state = (name, more) => tell({ sessionUpdate: "state_update", state: name, ...more });
  const hands = {
    ...own,
    say: (text) => tell({ sessionUpdate: "agent_message_chunk", messageId: answerId, content: { type: "text", text } }),
    begin: change,
    change,
    ask: async (toolCall) => {
      await state("requires_action");
      const question = { sessionId, title: toolCall.title, subject: { type: "tool_call", toolCall }, options };
      const answer = await client.request(v2.methods.client.session.requestPermission, question);
      if (!aborter.signal.aborted) await state("running");
      return answer;
    },
  };
  turns.add(aborter);
  const run = async () => {
    await tell({ sessionUpdate: "user_message", messageId, content: prompt });
    await state("running");
    const stopReason = await turn(stepsOf(prompt), aborter.signal, hands);
    turns.delete(aborter);
    await state("idle", { stopReason });
  };
  // One turn after the other.
  const begin = found.last.then(() => new Promise(setImmediate));
  found.last = begin.then(run).catch((error) => process.stderr.write(`${error}\n`));
  return { messageId };
});

const agent = v2.agentProtocolRouter().withV1(old).withV2(now);
agent.connect(v1.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
