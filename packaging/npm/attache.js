#!/usr/bin/env node
// Runs the program from the package for this platform, which npm installed as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `attache-acp-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/attache${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`error: the package \`${name}\`, which has the program for this platform, is not installed`);
  console.error("hint: install again without `--omit=optional`; if there is no such package, build attache from its source");
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: false });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    // A terminal gives Ctrl-C to both of us, and twice is more than once.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`error: cannot run ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
