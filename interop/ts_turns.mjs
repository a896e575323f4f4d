// A client on the TypeScript SDK that has whole turns with the built-in agent.
//
//     ts_turns.mjs 1|2 offline|scripted DIRECTORY AGENT [ARG…]
//     TOKEN=… ts_turns.mjs 1|2 offline|scripted DIRECTORY http://…|ws://…
//
// Both models do what the lines of a prompt say (`call TOOL JSON`), so that the turns are the same. The SDK checks every
// message against the official schema and complains on the console; here that is a failure.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { serveFiles, serveTerminals } from "./host.mjs";
import { expect, part, sdk, ws } from "./sdk.mjs";

const [versionText, model, cwd, command, ...args] = process.argv.slice(2);
const version = Number(versionText);
const acp = await sdk(version);
const { agent: to, client: from } = acp.methods;

console.error = (...what) => expect(false, `the SDK complains: ${what.map((x) => JSON.stringify(x) ?? x).join(" ")}`);
let child;
const stream = await connect();
const app = acp.client({ name: "interop-ts" });

/** A stream to the agent: a command to start, or a server by its address. */
async function connect() {
  const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
  if (/^https?:/.test(command)) return (await part("http-client")).createHttpStream(command, { headers });
  if (/^wss?:/.test(command)) {
    const { WebSocket } = ws();
    return (await part("ws-client")).createWebSocketStream(command, { headers, WebSocket });
  }
  child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  return acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}

// What was told since the beginning of the turn.
let updates = [];
let onUpdate = () => {};
app.onNotification(from.session.update, ({ params }) => {
  updates.push(params.update);
  onUpdate(params.update);
});
const of = (kind) => updates.filter((update) => update.sessionUpdate === kind);
const text = () => of("agent_message_chunk").map((update) => update.content.text).join("");

/** The tool calls of the turn as they are in the end, with all their states. */
function calls() {
  const calls = new Map();
  for (const update of updates) {
    if (!/^tool_call(_update)?$/.test(update.sessionUpdate)) continue;
    const known = calls.has(update.toolCallId);
    if (version === 1) expect(known === (update.sessionUpdate === "tool_call_update"), "a call begins with `tool_call`");
    const call = calls.get(update.toolCallId) ?? { states: [] };
    for (const [name, value] of Object.entries(update)) if (value != null) call[name] = value;
    if (update.status) call.states.push(update.status);
    calls.set(update.toolCallId, call);
  }
  return [...calls.values()];
}

let choice = "allow_once";
let asked = [];
let onAsked = async () => {};
app.onRequest(from.session.requestPermission, async ({ params }) => {
  asked.push(params);
  await onAsked();
  const option = params.options.find((option) => option.kind === choice);
  return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
});
const questions = [];
app.onRequest(from.elicitation.create, ({ params }) => {
  questions.push(params);
  return { action: "accept", content: { answer: "blue" } };
});
const served = version === 1 ? serveFiles(app, from, (_, path) => acp.RequestError.resourceNotFound(path)) : null;
const terminals = version === 1 ? serveTerminals(app, from) : null;

await app.connectWith(stream, async (ctx) => {
  const whoWeAre = { name: "interop-ts", version: "1" };
  const elicitation = { form: {} };
  const offers = { fs: { readTextFile: true, writeTextFile: true }, terminal: true, elicitation };
  const greeting =
    version === 1 ? { clientInfo: whoWeAre, clientCapabilities: offers } : { info: whoWeAre, capabilities: { elicitation } };
  const hello = await ctx.request(to.initialize, { protocolVersion: version, ...greeting });
  expect(hello.protocolVersion === version, "the version that was asked for");
  expect((hello.agentInfo ?? hello.info).name === "attache", "the agent says who it is");

  const place = version === 1 ? { cwd, mcpServers: [] } : { cwd };
  const session = await ctx.request(to.session.new, place);
  const { sessionId } = session;
  const current = (options, name) => options.find((option) => (option.id ?? option.configId) === name)?.currentValue;
  expect(current(session.configOptions, "mode") === "ask", "an option for the mode");
  expect(current(session.configOptions, "sandbox") === "on", "an option for the sandbox");

  /** One turn; how it ended. */
  const prompt = async (words, onEach = () => {}) => {
    updates = [];
    asked = [];
    // The SDK hands on an answer before updates that came earlier, so an `idle` counts only once the turn runs.
    let running = false;
    const ended = new Promise((resolve) => {
      onUpdate = (update) => {
        onEach(update);
        if (update.sessionUpdate !== "state_update") return;
        if (update.state === "running") running = true;
        if (update.state === "idle" && running) resolve(update.stopReason);
      };
    });
    const answer = await ctx.request(to.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
    const stop = version === 1 ? answer.stopReason : await ended;
    for (const call of calls()) expect(/completed|failed|cancelled/.test(call.status), `a call that is left ${call.status}`);
    return stop;
  };
  const set = (configId, value) => {
    const setting = version === 1 ? { value } : { type: "id", value };
    return ctx.request(to.session.setConfigOption, { sessionId, configId, ...setting });
  };
  const file = (name) => readFile(join(cwd, name), "utf8").catch(() => null);
  const call = (tool, input) => `call ${tool} ${JSON.stringify(input)}`;
  const edit = (old_text, new_text) => call("edit_file", { path: "a.txt", old_text, new_text });

  // A turn with all sorts of tools.
  await writeFile(join(cwd, "a.txt"), "one\ntwo\n");
  const steps = [
    call("update_plan", { entries: [{ content: "Change it", status: "in_progress" }] }),
    call("think", { thought: "hm" }),
    call("read_file", { path: "a.txt" }),
    edit("two", "three"),
    call("write_file", { path: "new.txt", content: "four\n" }),
    call("run_command", { command: "echo five > ran.txt; echo made" }),
    call("ask_user", { question: "Which colour?", choices: ["red", "blue"] }),
  ];
  const remember = model === "scripted" ? ["remember cherry"] : [];
  expect((await prompt([...remember, ...steps].join("\n"))) === "end_turn", "the turn ends");
  const live = calls();
  const kinds = live.map((call) => call.kind).join(" ");
  expect(kinds === "think think read edit edit execute other", `the kinds of the calls: ${kinds}`);
  for (const call of live) {
    const states = call.states.join(" ");
    expect(states === "pending in_progress completed", `${call.title}: ${states}: ${JSON.stringify(call.content)}`);
  }
  expect((await file("a.txt")) === "one\nthree\n" && (await file("new.txt")) === "four\n", "the files were changed");
  expect((await file("ran.txt")) === "five\n", "the command was run");
  const plan = of(version === 1 ? "plan" : "plan_update")[0];
  expect((plan?.entries ?? plan?.plan.entries)?.[0].content === "Change it", "the plan is shown");
  expect(of("usage_update").length > 0 && of("session_info_update").length > 0, "usage and a title are told");
  expect(live[2].locations?.[0].path === join(cwd, "a.txt"), "where it works is told");
  const ids = new Set(of("agent_message_chunk").map((chunk) => chunk.messageId));
  expect(ids.size > 0 && !ids.has(undefined) && !ids.has(null), "messages have ids");

  // What it asked.
  expect(asked.length === 3, `permission was asked for ${asked.length} times instead of 3`);
  const shown = (params) => (params.toolCall ?? params.subject?.toolCall)?.content ?? [];
  const diff = shown(asked[0]).find((part) => part.type === "diff");
  const change = version === 1 ? [diff?.oldText, diff?.newText].join() : diff?.patch?.diff ?? JSON.stringify(diff);
  expect(/two/.test(change) && /three/.test(change), `the request has the diff: ${JSON.stringify(asked[0])}`);
  const options = asked[0].options.map((option) => option.kind).join(" ");
  expect(options === "allow_once allow_always allow_always reject_once reject_always", `five options: ${options}`);
  expect(JSON.stringify(asked[2]).includes("echo five > ran.txt"), "the request has the command");
  expect(questions[0]?.message === "Which colour?", "the question was asked");
  expect(questions[0].requestedSchema.properties.answer.enum?.join() === "red,blue", "the choices are there");
  if (version === 1) {
    expect(served.reads > 0 && served.writes === 2, "files are read and written through the client");
    expect(live[5].content.every((part) => part.type === "content"), "the command ran in the agent's sandbox, as text");
    expect(terminals.size === 0, "no terminal is left");
    expect(session.modes?.currentModeId === "ask", "modes for clients that know no options");
  } else {
    expect(of("terminal_update").length > 0, "the terminal is shown");
  }
  const whole = { text: text(), calls: live };

  // Modes and options.
  if (version === 1) await ctx.request(to.session.setMode, { sessionId, modeId: "code" });
  else await set("mode", "code");
  await prompt(edit("three", "two"));
  expect(asked.length === 0 && (await file("a.txt")) === "one\ntwo\n", "mode `code` changes files without asking");
  expect(current((await set("mode", "architect")).configOptions, "mode") === "architect", "the option was set");
  await prompt(edit("two", "six"));
  const done = calls().filter((call) => call.status === "completed");
  expect(done.length === 0 && (await file("a.txt")) === "one\ntwo\n", "mode `architect` changes nothing");
  await prompt(call("switch_mode", { mode: "ask", plan: "Just do it." }));
  expect(asked.length === 1, "leaving `architect` is asked for");
  const told = of("config_option_update").at(-1);
  expect(told && current(told.configOptions, "mode") === "ask", "the new mode is told");
  expect(current((await set("sandbox", "off")).configOptions, "sandbox") === "off", "the sandbox was set");
  expect((await set("sandbox", "nonsense").catch((error) => error)) instanceof Error, "nonsense is an error");

  // A no, and no answer.
  choice = "reject_once";
  await prompt(edit("two", "six"));
  expect(calls()[0].status === "failed" && (await file("a.txt")) === "one\ntwo\n", "a no is a no");
  choice = "nothing";
  onAsked = () => ctx.notify(to.session.cancel, { sessionId });
  expect((await prompt(edit("two", "six"))) === "cancelled", "a turn is cancelled while it asks");
  expect(asked.length === 1 && calls().length === 1, "nothing is begun after a cancel");
  expect((await file("a.txt")) === "one\ntwo\n", "no answer is a no");
  onAsked = async () => {};
  choice = "allow_once";

  // Cancel while the model talks, and while a command runs.
  const once = (cancels) => {
    let done = false;
    return (update) => {
      if (done || !cancels(update)) return;
      done = true;
      ctx.notify(to.session.cancel, { sessionId });
    };
  };
  const talk = once((update) => update.sessionUpdate === "agent_message_chunk" && update.content.text.includes("word"));
  expect((await prompt(`slowly ${"word ".repeat(500)}`, talk)) === "cancelled", "a turn is cancelled while it talks");
  const running = once((update) => /"type":"terminal"|begun/.test(JSON.stringify(update.content ?? "")));
  expect((await prompt(call("run_command", { command: "echo be''gun; sleep 60" }), running)) === "cancelled", "and while it works");
  if (version === 1) {
    // The SDK hands on the answer before it has handled requests that came earlier.
    for (let i = 0; i < 100 && terminals.size > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(terminals.size === 0, "the terminal of a cancelled turn was released");
  }

  // The tour shows every kind of tool call; what it fetches is out of reach here.
  if (model === "offline") {
    expect((await prompt("tour")) === "end_turn", "the tour ends");
    const seen = new Set(calls().map((call) => call.kind));
    for (const kind of "read edit delete move search execute think fetch switch_mode other".split(" "))
      expect(seen.has(kind), `a call of the kind ${kind} in the tour: ${text()}`);
  }

  // A command of the agent's own, and what is not there.
  expect((await prompt("/status")) === "end_turn" && text().includes(sessionId), "slash commands work");
  const failure = await ctx.request(to.session.prompt, { sessionId: "none", prompt: [] }).catch((error) => error);
  expect(failure instanceof Error, "a session that is not there is an error");

  // List, close, load, resume, delete.
  const list = async () => (await ctx.request(to.session.list, { cwd })).sessions;
  const listed = (await list()).find((one) => one.sessionId === sessionId);
  expect(listed?.title && listed.cwd === cwd, "the session is listed with its title");
  await ctx.request(to.session.close, { sessionId });
  updates = [];
  onUpdate = () => {};
  if (version === 1) await ctx.request(to.session.load, { sessionId, ...place });
  else await ctx.request(to.session.resume, { sessionId, ...place, replayFrom: { type: "start" } });
  expect(text().startsWith(whole.text), "what was said is told again");
  const again = calls().slice(0, whole.calls.length);
  for (const [i, call] of whole.calls.entries()) {
    const same = ["toolCallId", "title", "kind", "status", "rawInput", "locations"];
    for (const key of same) expect(JSON.stringify(again[i]?.[key]) === JSON.stringify(call[key]), `${key} of ${call.title}`);
  }
  expect(JSON.stringify(again[3].content) === JSON.stringify(whole.calls[3].content), "the diff is told again");
  expect(JSON.stringify(again[5].content).includes("made") || version === 2, "the output is told again");
  expect(updates.some((update) => update.sessionUpdate.startsWith("user_message")), "the prompts are told again");
  await ctx.request(to.session.close, { sessionId });
  updates = [];
  const resumed = await ctx.request(to.session.resume, { sessionId, ...place });
  expect(current(resumed.configOptions, "sandbox") === "off", "options are as they were");
  expect(text() === "" && calls().length === 0, "a resumed session is not told again");
  if (model === "scripted") {
    await prompt("recall");
    expect(text().endsWith("remembered cherry"), `the model knows the conversation: ${text()}`);
  } else {
    expect((await prompt("say again")) === "end_turn" && text().includes("again"), "the session goes on");
  }
  await ctx.request(to.session.close, { sessionId });
  await ctx.request(to.session.delete, { sessionId });
  expect(!(await list()).some((one) => one.sessionId === sessionId), "the session is gone");
});
console.log("all as expected");
child?.kill();
process.exit(0);
