import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { type Call, done, expressCalls, fastifyCalls, fetchHandler, honoCalls, sign } from "../src/receiving.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const BODY = '{"cart": 4711, "price": 1.10}';

/** A receiver that drops what it has seen. */
function options() {
  const seen = new Set<string>();
  return { secrets: SECRET, isNew: ({ id }: Call) => !seen.has(id) && !!seen.add(id) };
}

async function request(secret: string): Promise<RequestInit> {
  const now = Math.floor(Date.now() / 1000);
  const headers = {
    "content-type": "application/json",
    "webhook-id": "msg_1",
    "webhook-timestamp": String(now),
    "webhook-signature": await sign(secret, "msg_1", now, BODY),
    "x-timer-id": "0190163d-8694-739b-aea5-966c26f8ad91",
    "x-timer-namespace": "shop",
    "x-timer-attempt": "1",
    "x-timer-scheduled-at": new Date(now * 1000).toISOString(),
  };
  return { method: "POST", headers, body: BODY };
}

/** Verified calls arrive once and whole, others not at all. */
async function check(send: (init: RequestInit) => Response | Promise<Response>): Promise<void> {
  const forged = await send(await request(OTHER));
  const first = await send(await request(SECRET));
  const repeated = await send(await request(SECRET));
  assert.equal(forged.status, 401);
  assert.deepEqual([first.status, await first.text()], [200, BODY]);
  assert.deepEqual([repeated.status, await repeated.text()], [200, ""]);
}

test("a fetch handler gets only verified calls, once", async () => {
  const handle = fetchHandler(options(), (call) => ({ ...done(), body: call.text() }));
  await check((init) => handle(new Request("http://test/hooks", init)));
});

test("Hono gets only verified calls, once", async () => {
  const app = new Hono<{ Variables: { timerCall: Call } }>();
  app.post("/hooks", honoCalls(options()), async (c) => {
    assert.equal(c.get("timerCall").attempt, 1);
    return c.body(await c.req.text());
  });
  await check((init) => app.request("/hooks", init));
});

test("Express gets only verified calls, once", async () => {
  const app = express();
  // biome-ignore lint/suspicious/noExplicitAny: Express is not typed here
  app.post("/hooks", expressCalls(options()), (req: any, res: any) => res.send(req.timerCall.text()));
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await check((init) => fetch(`http://127.0.0.1:${port}/hooks`, init));
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("Fastify gets only verified calls, once, and its other routes are as before", async () => {
  const app = Fastify();
  app.post("/free", async (req) => req.body);
  app.register(fastifyCalls, {
    ...options(),
    // biome-ignore lint/suspicious/noExplicitAny: the plugin decorates requests
    routes: (scope: any) => scope.post("/hooks", async (req: any) => req.timerCall.text()),
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  try {
    await check((init) => fetch(`${url}/hooks`, init));
    const free = await fetch(`${url}/free`, { method: "POST", body: '{"a":1}', headers: { "content-type": "application/json" } });
    assert.deepEqual(await free.json(), { a: 1 });
  } finally {
    await app.close();
  }
});
