// What an agent does for a prompt of lines, over whatever client there is.
import { execSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const KINDS = { read: "read", write: "edit", run: "execute" };

/** The lines of a prompt that are steps: `read PATH`, `write PATH TEXT` (with `\\n` in it), `run COMMAND`, `slowly`. */
export function stepsOf(text) {
  const lines = text.split("\n").map((line) => /^(read|write|run) (\S+) ?(.*)$|^(slowly)$/.exec(line));
  return lines.filter(Boolean).map(([line, verb, first, rest]) => ({ line, verb, first, rest }));
}

/** Reading, writing and running without the client. */
export const ownHands = {
  read: (path) => readFileSync(path, "utf8"),
  write: (path, content) => writeFileSync(path, content),
  run: (command) => {
    execSync(command);
    return true;
  },
};

/** Does the steps and returns the stop reason. Writing and running are asked for first. */
export async function work(steps, client) {
  for (const [index, { line, verb, first, rest }] of steps.entries()) {
    if (!verb) {
      for (let word = 0; word < 300 && !client.isCancelled(); word++) {
        await client.say(`word ${word} `);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      return client.isCancelled() ? "cancelled" : "end_turn";
    }
    const toolCallId = `t${index + 1}`;
    const content = rest.replaceAll("\\n", "\n");
    const command = line.slice("run ".length);
    const toolCall = { toolCallId, title: line, kind: KINDS[verb], status: "pending" };
    if (verb === "run") toolCall.rawInput = { command };
    else toolCall.locations = [{ path: first }];
    if (verb === "write") toolCall.content = [client.diff(first, content)];
    await client.say(`step ${index + 1}\n`);
    await client.begin(toolCall);
    if (verb !== "read") {
      const { outcome } = await client.ask(toolCall);
      if (outcome.outcome === "cancelled") return "cancelled";
      if (outcome.optionId !== "yes") {
        await client.change({ toolCallId, status: "failed" });
        continue;
      }
    }
    await client.change({ toolCallId, status: "in_progress" });
    let isDone = true;
    try {
      if (verb === "read") isDone = (await client.read(first)).length > 0;
      if (verb === "write") await client.write(first, content);
      if (verb === "run") isDone = await client.run(command);
    } catch {
      isDone = false;
    }
    await client.change({ toolCallId, status: isDone ? "completed" : "failed" });
  }
  await client.say("done");
  return "end_turn";
}
