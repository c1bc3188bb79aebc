// One function for each file of sdks/conformance/vectors.

import { Json, TimerClient, TimerError } from "../src/index.js";
import { formatDuration, formatInstant, parseRetryAfter } from "../src/time.js";
import { again, check, done, failed, InvalidCall, readCall, retryAfter, sign } from "../src/webhook.js";
import { CALLS, type Value, wire } from "./calls.js";
import { fail, match, type Rig, Scenario, shown } from "./scenario.js";

function same(actual: unknown, expected: unknown, of: unknown): void {
  if (actual !== expected) fail(`${JSON.stringify(of)}: ${actual}, not ${expected}`);
}

const bytes = (text: string) => new TextEncoder().encode(text);

async function refuses(work: () => unknown, Kind: new (...args: never[]) => Error): Promise<boolean> {
  try {
    await work();
    return false;
  } catch (error) {
    if (error instanceof Kind) return true;
    throw error;
  }
}

export const VECTORS: Record<string, (rig: Rig, data: Value) => Promise<void>> = {
  async signatures(_, data) {
    for (const { secret, id, timestamp, body, signature } of data.sign)
      same(await sign(secret, id, timestamp, body), signature, id);
    for (const { name, headers, body, secrets, tolerance_seconds, now, valid } of data.verify) {
      const options = { toleranceMs: tolerance_seconds * 1000, now: now * 1000 };
      same(!(await refuses(() => check(headers, bytes(body), secrets, options), InvalidCall)), valid, name);
    }
    for (const secret of data.bad_secrets) same(await refuses(() => sign(secret, "id", 0, ""), TypeError), true, secret);
  },

  async durations(_, data) {
    for (const { us, text } of data.format) same(formatDuration(us / 1000), text, us);
    for (const us of data.refused) same(await refuses(() => formatDuration(us / 1000), RangeError), true, us);
  },

  async instants(_, data) {
    for (const { text, us } of data.parse) same(Date.parse(text), Math.floor(us / 1000), text);
    for (const { text, us } of data.format) same(Date.parse(formatInstant(new Date(us / 1000))), Math.floor(us / 1000), text);
  },

  async retry_after(_, data) {
    for (const { value, now, ms } of data.cases) same(parseRetryAfter(value, now * 1000) ?? null, ms, value);
  },

  async errors(_, data) {
    for (const { status, headers, body, error } of data.cases) {
      const answer = async () => new Response(body, { status, headers });
      const client = new TimerClient({ fetch: answer, retries: 0 });
      const actual = await client.whoami().then(
        () => fail(`${body} was taken`),
        (thrown) => (thrown instanceof TimerError ? shown(thrown) : fail(String(thrown))),
      );
      match(error.message === null ? { ...error, message: "$any" } : error, actual, String(status));
    }
  },

  async exact_json(rig, data) {
    const client = rig.client();
    for (const text of data.texts) {
      const json = new Json(text);
      const { id } = await client.timers.create({ url: `${rig.dev.receiver}/exact`, in: "1h", payload: json, metadata: json });
      const kept = await client.timers.get(id);
      const payload = kept.callbackConfig.type === "http" ? kept.callbackConfig.payload : undefined;
      for (const part of [payload, kept.metadata]) same(part?.text ?? "null", text, text);
      await client.timers.fire(id);
      const [call] = await rig.dev.inbox.waitFor({ path: "/exact", timer: id });
      same(call?.body, text, "the call");
    }
  },

  async calls(_, data) {
    for (const { name, headers, body, call } of data.cases) {
      const read = readCall(headers, bytes(body));
      match(call, { ...wire(read), lateness_ms: read.latenessMs }, name);
    }
  },

  async protocol(_, data) {
    for (const { answer, next, at, seconds, status, headers, body } of data.cases) {
      const made = { done: () => done(next), again: () => again(at), failed, retry_after: () => retryAfter(seconds * 1000) };
      const actual = made[answer as keyof typeof made]();
      match({ status, headers, body }, { ...actual, body: actual.body ? JSON.parse(actual.body) : null });
    }
  },

  async retries(rig, data) {
    for (const { call, args, outcome, retried } of data.cases) {
      const fault = { unreachable: { do: "drop" }, cut: { do: "cut" } }[outcome as string] ?? { do: "answer", status: outcome };
      await rig.forget();
      await rig.control("PUT", "faults", [fault]);
      await Promise.resolve(CALLS[call]!(rig.client(), new Scenario(rig).filled(args))).catch((error) => {
        if (!(error instanceof TimerError)) throw error;
      });
      same((await rig.requests()).length, retried ? 2 : 1, [call, args, outcome]);
    }
  },
};
