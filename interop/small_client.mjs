// A small client on the TypeScript SDK for `attache check client`: one prompt, everything allowed, then it leaves.
//
//     small_client.mjs 1|2 PROMPT AGENT [ARG…]
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { serveFiles } from "./host.mjs";
import { sdk } from "./sdk.mjs";

const [versionText, words, command, ...args] = process.argv.slice(2);
const version = Number(versionText);
const acp = await sdk(version);
const { agent: to, client: from } = acp.methods;
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

const app = acp.client({ name: "small-ts" });
app.onRequest(from.session.requestPermission, ({ params }) => {
  const option = params.options.find(({ kind }) => kind === "allow_once") ?? params.options[0];
  return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
});
let onUpdate = () => {};
app.onNotification(from.session.update, ({ params }) => onUpdate(params.update));
if (version === 1) {
  const notFound = (error, path) => new acp.RequestError(-32002, "Resource not found", { uri: path });
  serveFiles(app, from, notFound);
}

await app.connectWith(stream, async (ctx) => {
  const info = { name: "small-ts", version: "2.4.0" };
  const offers = { fs: { readTextFile: true, writeTextFile: true } };
  const greeting = version === 1 ? { clientInfo: info, clientCapabilities: offers } : { info, capabilities: {} };
  const { protocolVersion } = await ctx.request(to.initialize, { protocolVersion: version, ...greeting });
  if (protocolVersion !== version) return;
  const place = { cwd: process.cwd(), ...(version === 1 && { mcpServers: [] }) };
  const { sessionId } = await ctx.request(to.session.new, place);
  let running = false;
  const ended = new Promise((resolve) => {
    onUpdate = ({ sessionUpdate, state }) => {
      if (sessionUpdate !== "state_update") return;
      if (state === "running") running = true;
      if (state === "idle" && running) resolve();
    };
  });
  await ctx.request(to.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
  if (version === 2) await ended;
});
child.stdin.end();
