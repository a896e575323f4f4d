// A client on the TypeScript SDK that puts the demonstration agent through its paces.
//
//     ts_client.mjs 1|2 DIRECTORY AGENT [ARG…]
//
// The SDK checks every message against the official schema and complains on the console; here that is a failure.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { serveFiles, serveTerminals } from "./host.mjs";
import { expect, sdk } from "./sdk.mjs";

const [versionText, cwd, command, ...args] = process.argv.slice(2);
const version = Number(versionText);
const acp = await sdk(version);
const { agent: to, client: from } = acp.methods;

console.error = (...what) => expect(false, `the SDK complains: ${what.map((x) => JSON.stringify(x) ?? x).join(" ")}`);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

const updates = [];
let onUpdate = () => {};
const kinds = () => updates.map((update) => update.sessionUpdate);
const text = () => {
  const chunks = updates.filter((update) => update.sessionUpdate === "agent_message_chunk");
  return chunks.map((update) => update.content.text).join("");
};

let choice = "allow_once";
let asked = 0;
const app = acp.client({ name: "interop-ts" });
app.onRequest(from.session.requestPermission, ({ params }) => {
  asked += 1;
  const option = params.options.find((option) => option.kind === choice);
  return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
});
app.onNotification(from.session.update, ({ params }) => {
  updates.push(params.update);
  onUpdate(params.update);
});
if (version === 1) serveFiles(app, from);
const terminals = version === 1 ? serveTerminals(app, from) : new Map();

await app.connectWith(stream, async (ctx) => {
  const whoWeAre = { name: "interop-ts", version: "1" };
  const offers = { fs: { readTextFile: true, writeTextFile: true }, terminal: true };
  const greeting =
    version === 1 ? { clientInfo: whoWeAre, clientCapabilities: offers } : { info: whoWeAre, capabilities: {} };
  const hello = await ctx.request(to.initialize, { protocolVersion: version, ...greeting });
  expect(hello.protocolVersion === version, "the version that was asked for");

  const place = version === 1 ? { cwd, mcpServers: [] } : { cwd };
  const session = await ctx.request(to.session.new, place);
  const { sessionId } = session;
  const mode = session.configOptions.find((option) => option.category === "mode");
  expect(mode?.currentValue === "ask", "an option for the mode");

  /** One turn; how it ended. */
  const prompt = async (words, onEach = () => {}) => {
    updates.length = 0;
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
    return version === 1 ? answer.stopReason : await ended;
  };

  const file = join(cwd, "notes.txt");
  await writeFile(file, "one\ntwo\n");
  const everything = ["say hello there", "think hm", "plan", "ask", `diff ${file}`, "screen", "usage", "title My day"];
  expect((await prompt(everything.join("; "))) === "end_turn", "the turn ends");
  expect(text().includes("hello there"), "what was to be said is said");
  expect(asked === 1, "permission was asked for");
  const common = ["agent_thought_chunk", "tool_call_update", "usage_update", "session_info_update"];
  const own = version === 1 ? ["tool_call", "plan"] : ["plan_update", "terminal_update", "user_message"];
  for (const kind of [...common, ...own]) expect(kinds().includes(kind), `an update ${kind}`);

  if (version === 1) {
    await prompt(`read ${file}; write ${file} three; run echo four`);
    expect(text().includes("It has 2 lines."), "the file was read through the client");
    expect((await readFile(file, "utf8")) === "three", "the file was written through the client");
    expect(text().includes("Exit code 0, output: four"), "the command was run through the client");
    expect(terminals.size === 0, "the terminal was released");
    expect(session.modes?.currentModeId === "ask", "modes for clients that know no options");
    await ctx.request(to.session.setMode, { sessionId, modeId: "auto" });
  } else {
    await ctx.request(to.session.setConfigOption, { sessionId, configId: "mode", type: "id", value: "auto" });
  }
  asked = 0;
  await prompt("ask");
  expect(asked === 0, "the mode was changed");
  const setting = { sessionId, configId: "mode", value: "ask" };
  const set = await ctx.request(to.session.setConfigOption, version === 1 ? setting : { ...setting, type: "id" });
  expect(set.configOptions[0].currentValue === "ask", "the option was set");

  choice = "reject_once";
  await prompt("ask");
  expect(text().includes("Then not."), "a no is a no");

  const cancel = (update) => {
    if (update.sessionUpdate === "agent_message_chunk") ctx.notify(to.session.cancel, { sessionId });
  };
  expect((await prompt("slow", cancel)) === "cancelled", "a turn can be cancelled");
  expect((await prompt("refuse")) === "refusal", "a turn can be refused");

  const failure = await ctx.request(to.session.prompt, { sessionId: "none", prompt: [] }).catch((error) => error);
  expect(failure instanceof Error, "a session that is not there is an error");
  const listed = await ctx.request(to.session.list, {});
  expect(listed.sessions[0].title === "My day", "the session is listed with its title");

  await ctx.request(to.session.close, { sessionId });
  updates.length = 0;
  onUpdate = () => {};
  if (version === 1) await ctx.request(to.session.load, { sessionId, ...place });
  else await ctx.request(to.session.resume, { sessionId, ...place, replayFrom: { type: "start" } });
  expect(text().includes("hello there"), "the history is told again");
  expect((await prompt("say again")) === "end_turn", "the session goes on");
  await ctx.request(to.session.close, { sessionId });
  await ctx.request(to.session.delete, { sessionId });
  expect((await ctx.request(to.session.list, {})).sessions.length === 0, "the session is gone");
});
console.log("all as expected");
child.kill();
process.exit(0);
