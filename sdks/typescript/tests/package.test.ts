import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { build } from "esbuild";
import { Json, TimerClient } from "../src/index.js";
import { decode, encode, query } from "../src/json.js";
import { TimerDev } from "../src/testing.js";
import { newId } from "../src/time.js";

/** What a page or a worker may load for it, minified. */
const BUNDLE_BYTES_MAX = 8 * 1024;

test("the package is found as a module and as CommonJS", async () => {
  const required = createRequire(import.meta.url)("timer-platform");
  const imported = await import("timer-platform" as string);
  const testing = await import("timer-platform/testing" as string);
  const webhook = await import("timer-platform/webhook" as string);
  assert.deepEqual([typeof required.TimerClient, typeof imported.TimerClient], ["function", "function"]);
  assert.equal(typeof testing.TimerDev.start, "function");
  assert.equal(typeof webhook.verify, "function");
});

test("a bundle of the client is small, and has nothing of receivers and tests", async () => {
  const entry = 'import { TimerClient } from "timer-platform"; console.log(new TimerClient());';
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: "." },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    external: ["node:crypto"],
  });
  const { text, contents } = outputFiles[0]!;
  assert.ok(contents.length < BUNDLE_BYTES_MAX, `${contents.length} bytes`);
  assert.ok(!text.includes("webhook-id") && !text.includes("child_process"));
});

test("a payload is cut out of an answer as text", () => {
  const text = '{"data": {"callback_config": {"payload": {"b": 1.10, "a_b": [1]}, "headers": {"x_y": "z"}}, "time_left": 1}}';
  assert.deepEqual(decode(text), {
    data: { callbackConfig: { payload: new Json('{"b": 1.10, "a_b": [1]}'), headers: { x_y: "z" } }, timeLeft: 1 },
  });
  for (const broken of ["", "{", '{"a" 1}', "[1,]", "[1 2]", "{}x", '{"a":}', "nul"]) {
    assert.throws(() => decode(broken), SyntaxError, broken);
  }
});

test("arguments are written with the names of the API, and what is the client's own stays", () => {
  const value = {
    executeAt: new Date(0),
    retryPolicy: { maxInterval: 90_000 },
    metadata: { myKey: 1 },
    absent: undefined,
    group: null,
  };
  assert.equal(
    encode(value),
    '{"execute_at":"1970-01-01T00:00:00.000Z","retry_policy":{"max_interval":"1m30s"},"metadata":{"myKey":1},"group":null}',
  );
  assert.equal(
    query({ status: ["failed", "paused"], metadata: { "a.bC": "ü" }, limit: 3 }),
    "?status=failed%2Cpaused&metadata.a.bC=%C3%BC&limit=3",
  );
});

test("ids are UUIDs of version 7, in the order of time", async () => {
  const id = await newId();
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.ok(Math.abs(Number.parseInt(id.replace("-", "").slice(0, 12), 16) - Date.now()) < 1000);
});

test("a timer needs a time and a receiver", async () => {
  const { timers } = new TimerClient();
  await assert.rejects(timers.create({ url: "http://test/" }), TypeError);
  await assert.rejects(timers.create({ in: "1h" }), TypeError);
});

test("a reminder of thirty days is retried and arrives", async () => {
  const dev = await TimerDev.start();
  try {
    await dev.inbox.answer({ path: "/remind", status: 503, times: 2 });
    const retryPolicy = { maxRetries: 5, initialInterval: "10m" };
    const timer = await dev.client.timers.create({
      url: `${dev.receiver}/remind`,
      in: "30d",
      payload: { user: 42 },
      retryPolicy,
    });
    await dev.advance({ by: "31d" });
    const calls = await dev.inbox.waitFor({ path: "/remind", count: 3 });
    assert.deepEqual((await dev.verify(calls[2]!)).json(), { user: 42 });
    assert.equal((await dev.client.timers.get(timer.id)).status, "completed");
  } finally {
    await dev.stop();
  }
});
