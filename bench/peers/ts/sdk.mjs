// Finds the TypeScript SDK under the directory that PEERS_HOME names.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { resolve } = createRequire(join(process.env.PEERS_HOME, "npm", "tssdk", "package.json"));

/** The SDK for version 1 of the protocol. */
export const acp = await import(pathToFileURL(resolve("@agentclientprotocol/sdk")));
