// A reminder of thirty days, its retries and its end, tested in a second.
//
//   TIMER_BIN=… node --test test-without-waiting/reminder.test.ts

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TimerDev } from "timer-platform/testing";

let dev: TimerDev;

before(async () => {
  dev = await TimerDev.start();
});
after(() => dev.stop());

test("nothing comes before its time", async () => {
  await dev.client.timers.create({ url: `${dev.receiver}/remind`, in: "30d", payload: { user: 42 } });
  await dev.advance({ by: "29d23h" });
  assert.deepEqual(await dev.inbox.calls({ path: "/remind" }), []);

  await dev.advance({ by: "1h" });
  const [call] = await dev.inbox.waitFor({ path: "/remind" });
  assert.deepEqual([JSON.parse(call!.body), call!.signatureValid], [{ user: 42 }, true]);
});

test("a receiver that is down for an hour gets its reminder", async () => {
  await dev.inbox.answer({ path: "/late", status: 503, times: 3 });
  const retryPolicy = { maxRetries: 10, initialInterval: "20m" };
  const timer = await dev.client.timers.create({ url: `${dev.receiver}/late`, in: "30d", retryPolicy });
  await dev.advance({ by: "31d" });
  const calls = await dev.inbox.waitFor({ path: "/late", count: 4 });
  assert.deepEqual(calls.map(({ attempt }) => attempt), [1, 2, 3, 4]);
  assert.equal((await dev.client.timers.get(timer.id)).status, "completed");
});
