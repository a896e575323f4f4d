// What a client of version 1 does for an agent: files and terminals.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";

/** Serves files as they are on the disk, and counts how often. A file that is not there is the error for that. */
export function serveFiles(app, from, notFound = (error) => error) {
  const served = { reads: 0, writes: 0 };
  app.onRequest(from.fs.readTextFile, async ({ params }) => {
    served.reads += 1;
    const text = await readFile(params.path, "utf8").catch((error) => Promise.reject(notFound(error, params.path)));
    if (params.line == null && params.limit == null) return { content: text };
    const start = (params.line ?? 1) - 1;
    const lines = text.split("\n").slice(start, params.limit == null ? undefined : start + params.limit);
    return { content: lines.join("\n") };
  });
  app.onRequest(from.fs.writeTextFile, async ({ params }) => {
    served.writes += 1;
    await writeFile(params.path, params.content);
    return {};
  });
  return served;
}

/** Serves terminals; those that are not released yet are in the map. */
export function serveTerminals(app, from) {
  const terminals = new Map();
  let count = 0;
  app.onRequest(from.terminal.create, ({ params }) => {
    const env = Object.fromEntries((params.env ?? []).map(({ name, value }) => [name, value]));
    const options = { cwd: params.cwd ?? undefined, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] };
    const child = spawn(params.command, params.args ?? [], options);
    const terminal = { child, output: "" };
    child.stdout.on("data", (data) => (terminal.output += data));
    terminal.ended = new Promise((resolve) => {
      child.on("close", (exitCode, signal) => resolve({ exitCode, signal }));
    });
    count += 1;
    const terminalId = `terminal-${count}`;
    terminals.set(terminalId, terminal);
    return { terminalId };
  });
  const find = (params) => terminals.get(params.terminalId);
  app.onRequest(from.terminal.waitForExit, ({ params }) => find(params).ended);
  app.onRequest(from.terminal.output, ({ params }) => ({ output: find(params).output, truncated: false }));
  app.onRequest(from.terminal.kill, ({ params }) => {
    find(params).child.kill("SIGKILL");
    return {};
  });
  app.onRequest(from.terminal.release, ({ params }) => {
    find(params).child.kill("SIGKILL");
    terminals.delete(params.terminalId);
    return {};
  });
  return terminals;
}
