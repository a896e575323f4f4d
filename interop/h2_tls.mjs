// A client over HTTP/2 with TLS, by node's own modules and nothing else: CERTIFICATE=FILE TOKEN=… node h2_tls.mjs URL DIR. Everything goes
// over one TLS connection. With PROXY=PORT it is a server instead: it takes HTTP/2 with TLS (KEY=FILE) and nothing else, and
// passes it on to URL without either; says `h2 N` when it is told to end, which is how many requests there were.
import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";

const { CERTIFICATE, KEY, PROXY, TOKEN, FINGERPRINT } = process.env;
const [url, dir] = process.argv.slice(2);
const certificate = readFileSync(CERTIFICATE);

function expect(what, found, wanted) {
  if (JSON.stringify(found) === JSON.stringify(wanted)) return;
  console.error(`not as expected: ${what} is ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
  process.exit(1);
}

function proxy() {
  let count = 0;
  const server = http2.createSecureServer({ key: readFileSync(KEY), cert: certificate, allowHTTP1: false }, (request, answer) => {
    count += 1;
    const headers = { host: request.authority };
    for (const [name, value] of Object.entries(request.headers)) if (!name.startsWith(":")) headers[name] = value;
    const onward = http.request(url, { method: request.method, headers, agent: false }, (found) => {
      const kept = Object.entries(found.headers).filter(([name]) => !["connection", "transfer-encoding", "keep-alive"].includes(name));
      answer.writeHead(found.statusCode, Object.fromEntries(kept));
      found.pipe(answer);
      found.on("error", () => answer.stream?.close());
    });
    onward.on("error", () => answer.stream?.close());
    answer.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.listen(Number(PROXY), "127.0.0.1");
  process.on("SIGTERM", () => {
    console.log(`h2 ${count}`);
    process.exit(0);
  });
}

// A request, answered whole.
function ask(session, headers, body) {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":path": "/acp", authorization: `Bearer ${TOKEN}`, ...headers });
    let text = "";
    let found;
    stream.setEncoding("utf8");
    stream.on("response", (headers) => (found = headers));
    stream.on("data", (data) => (text += data));
    stream.on("end", () => resolve({ status: found[":status"], headers: found, text }));
    stream.on("error", reject);
    stream.end(body);
  });
}

const post = (session, headers, message) =>
  ask(session, { ":method": "POST", "content-type": "application/json", ...headers }, JSON.stringify(message));

// A stream of events: the messages as they come, and its end.
function events(session, headers) {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":path": "/acp", authorization: `Bearer ${TOKEN}`, accept: "text/event-stream", ...headers });
    const found = { messages: [], waiting: [], ended: new Promise((done) => stream.on("end", done)) };
    found.until = (fits) => {
      const message = found.messages.find(fits);
      return message ?? new Promise((done) => found.waiting.push({ fits, done }));
    };
    let text = "";
    stream.setEncoding("utf8");
    stream.on("response", (headers) => {
      expect("the status of a stream", headers[":status"], 200);
      expect("its type", headers["content-type"], "text/event-stream");
      resolve(found);
    });
    stream.on("data", (data) => {
      const parts = (text + data).split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const lines = part.split("\n").filter((line) => line.startsWith("data:"));
        if (lines.length === 0) continue;
        const message = JSON.parse(lines.map((line) => line.slice(5).trimStart()).join("\n"));
        found.messages.push(message);
        found.waiting.filter(({ fits }) => fits(message)).forEach(({ done }) => done(message));
      }
    });
    stream.on("error", reject);
  });
}

async function client() {
  const session = http2.connect(url, { ca: certificate, servername: "localhost" });
  await new Promise((done, fail) => session.on("connect", done).on("error", fail));
  expect("the protocol", [session.alpnProtocol, session.encrypted], ["h2", true]);
  expect("the version of TLS", session.socket.getProtocol(), "TLSv1.3");
  const der = session.socket.getPeerCertificate().raw;
  expect("the certificate", der.equals(new X509Certificate(certificate).raw), true);
  expect("the fingerprint", "sha256:" + createHash("sha256").update(der).digest("hex"), FINGERPRINT);

  const refused = await ask(session, { ":method": "POST", authorization: "Bearer wrong" }, "{}");
  expect("the status for a wrong token", refused.status, 401);
  const hello = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: 1, clientCapabilities: {} } };
  const greeted = await post(session, {}, hello);
  expect("the status of initialize", greeted.status, 200);
  expect("the version", JSON.parse(greeted.text).result.protocolVersion, 1);
  const connection = { "acp-connection-id": greeted.headers["acp-connection-id"] };
  const ofConnection = await events(session, connection);

  const open = { jsonrpc: "2.0", id: 1, method: "session/new", params: { cwd: dir, mcpServers: [] } };
  expect("the status of session/new", (await post(session, connection, open)).status, 202);
  const { sessionId } = (await ofConnection.until((message) => message.id === 1)).result;
  const inSession = { ...connection, "acp-session-id": sessionId };
  const ofSession = await events(session, inSession);
  const say = (id, text) => ({ jsonrpc: "2.0", id, method: "session/prompt", params: { sessionId, prompt: [{ type: "text", text }] } });
  expect("the status of session/prompt", (await post(session, inSession, say(2, "read a.txt"))).status, 202);
  expect("the end of the turn", (await ofSession.until((message) => message.id === 2)).result.stopReason, "end_turn");
  expect("the file in what was said", JSON.stringify(ofSession.messages).includes("two"), true);
  // More than both windows of HTTP/2 hold, up and down.
  const long = "word ".repeat(600_000);
  const before = ofSession.messages.length;
  expect("the status of a long prompt", (await post(session, inSession, say(3, `say ${long}`))).status, 202);
  await ofSession.until((message) => message.id === 3);
  expect("that there was an answer", ofSession.messages.length > before, true);

  expect("the status of DELETE", (await ask(session, { ":method": "DELETE", ...connection })).status, 202);
  await Promise.all([ofConnection.ended, ofSession.ended]);
  expect("the status after it", (await post(session, inSession, say(4, "help"))).status, 404);
  session.close();
  console.log("all as expected");
}

if (PROXY) proxy();
else await client();
