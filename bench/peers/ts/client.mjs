// The client under test on the TypeScript SDK, written as the SDK's example is.
//
//     client.mjs AGENT [ARG…]
//
// Sends the prompt in BENCH_PROMPT, reads every update and prints how many there were. With BENCH_STALL=1 it takes the
// first update and no more, and stays until it is killed.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { acp } from "./sdk.mjs";

const [command, ...args] = process.argv.slice(2);
const stall = process.env.BENCH_STALL === "1";
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

const count = await acp
  .client({ name: "bench-ts" })
  .onRequest(acp.methods.client.fs.readTextFile, () => ({ content: "x" }))
  .connectWith(stream, async (ctx) => {
    const clientCapabilities = { fs: { readTextFile: true } };
    await ctx.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities });
    return ctx.buildSession("/tmp").withSession(async (session) => {
      session.prompt(process.env.BENCH_PROMPT);
      for (let count = 0; ; count++) {
        const message = await session.nextUpdate();
        if (message.kind === "stop") return count;
        if (stall) await new Promise(() => {});
      }
    });
  });
console.log(`count ${count}`);
child.kill();
process.exit(0);
