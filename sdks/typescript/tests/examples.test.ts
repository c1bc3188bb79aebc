// The examples, started as a user starts them.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { TimerDev } from "../src/testing.js";

const EXAMPLES = resolve(import.meta.dirname ?? ".", "../../../../examples/typescript");

let dev: TimerDev;
before(async () => {
  dev = await TimerDev.start();
});
after(() => dev.stop());

const environment = () => ({
  ...process.env,
  TIMER_URL: dev.url,
  TIMER_API_KEY: dev.apiKey,
  SIGNING_SECRET: dev.signingSecret,
});
const built = (name: string) => join(EXAMPLES, "build", name);

async function output(name: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [built(name), ...args], { env: environment(), timeout: 60_000 });
  return stdout;
}

// First: it knows the real time, and a service whose clock was moved by days signs for later.
test("receiver", async () => {
  const child = spawn(process.execPath, [built("receiver/main.js"), "0"], {
    env: environment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  try {
    const { value: url } = await lines.next();
    await dev.client.timers.create({ url: `${url}/remind`, in: "1s", payload: { cart: 4711 } });
    await dev.client.timers.create({ url: `${url}/poll`, in: "2s", protocol: "timer", payload: { name: "job 7", done: true } });
    await dev.advance({ by: "2s" });
    assert.match((await lines.next()).value, /attempt 1/);
    assert.equal((await lines.next()).value, "job 7 is done");
  } finally {
    child.kill();
  }
});

test("reminder", async () => {
  assert.ok((await output("reminder/main.js", `${dev.receiver}/cart`)).endsWith("cart-4711 pending\ncart-4712 canceled\n"));
  await dev.advance({ by: "2d" });
  const [call] = await dev.inbox.waitFor({ path: "/cart" });
  assert.equal(call?.body, '{"cart":4711}');
});

test("saga-timeout", async () => {
  assert.equal(await output("saga-timeout/main.js", `${dev.receiver}/release`), "order-42 is paid\n");
  const [call] = await dev.inbox.waitFor({ path: "/release" });
  assert.equal(call?.body, '{"order":"order-43"}');
});

test("each example is short", async () => {
  for (const name of ["reminder", "receiver", "saga-timeout", "test-without-waiting"]) {
    for (const file of await readdir(join(EXAMPLES, name))) {
      assert.ok((await readFile(join(EXAMPLES, name, file), "utf8")).split("\n").length < 80, file);
    }
  }
});
