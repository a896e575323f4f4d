// Finds the TypeScript SDK in the directory that TS_SDK names, and small things that both ends need.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.TS_SDK, "package.json"));

/** The SDK for one version of the protocol. */
export function sdk(version) {
  const name = version === 2 ? "@agentclientprotocol/sdk/experimental/v2" : "@agentclientprotocol/sdk";
  return import(pathToFileURL(require.resolve(name)));
}

/** Another part of the SDK, by its name in the package. */
export const part = (name) => import(pathToFileURL(require.resolve(`@agentclientprotocol/sdk/experimental/${name}`)));

/** The package `ws`, which is installed beside the SDK. */
export const ws = () => require("ws");

/** Ends the process with a reason unless something holds. */
export function expect(holds, what) {
  if (holds) return;
  console.log(`not as expected: ${what}`);
  process.exit(1);
}
