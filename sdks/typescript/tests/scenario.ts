// The steps of a scenario: see sdks/conformance/README.md.

import { randomUUID } from "node:crypto";
import { TimerClient, TimerError, type TimerEvent } from "../src/index.js";
import type { InboxCall, TimerDev } from "../src/testing.js";
import { type Args, CALLS, type Value, wire } from "./calls.js";

const WAIT_MS_MAX = 10_000;
const LENGTHS: Record<string, (length: number, bound: number) => boolean> = {
  $length: (length, bound) => length === bound,
  $min_length: (length, bound) => length >= bound,
  $max_length: (length, bound) => length <= bound,
};

const isInstant = (value: unknown): value is string => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value);

/** Microseconds; `Date` knows milliseconds. */
function micros(text: string): number {
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? "";
  return Date.parse(text.replace(/\.\d+/, "")) * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}

export function fail(message: string): never {
  throw new Error(message);
}

/** Throws where `actual` is not as expected. */
export function match(expected: Value, actual: Value, where = "result"): void {
  const shown = () => `${where} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`;
  if (expected === "$any") {
    if (actual === null || actual === undefined) fail(shown());
  } else if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) fail(shown());
    expected.forEach((part, index) => {
      match(part, actual[index], `${where}.${index}`);
    });
  } else if (typeof expected === "object" && expected !== null) {
    for (const [name, part] of Object.entries(expected) as [string, Value][]) {
      if (name === "$json") match(part, JSON.parse(actual), where);
      else if (name in LENGTHS) LENGTHS[name]!(actual.length, part) || fail(shown());
      else match(part, actual?.[name] ?? null, `${where}.${name}`);
    }
  } else if (isInstant(expected) && isInstant(actual)) {
    if (micros(expected) !== micros(actual)) fail(shown());
  } else if (expected !== (actual ?? null)) fail(shown());
}

export function shown(error: TimerError): Args {
  const { kind, status, code, message, field, requestId, retryAfterMs } = error;
  return { kind, status, code, message, field, request_id: requestId, retry_after_ms: retryAfterMs };
}

/** A service, the faulty server in front of it, and clients that call through that. */
export class Rig {
  constructor(
    readonly dev: TimerDev,
    readonly faulty: string,
  ) {}

  client(options: { apiKey?: string; timeout?: number; trace?: () => Record<string, string> } = {}): TimerClient {
    return new TimerClient({ url: this.faulty, apiKey: this.dev.apiKey, ...options });
  }

  async control(method: string, path: string, body?: unknown): Promise<Value> {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    return (await fetch(`${this.faulty}/-/${path}`, { method, ...init })).json();
  }

  async requests(): Promise<Args[]> {
    return (await this.control("GET", "requests")).requests;
  }

  async forget(): Promise<void> {
    await this.control("PUT", "faults", []);
    await this.control("DELETE", "requests");
  }
}

interface Stream {
  abort: AbortController;
  events: AsyncIterator<TimerEvent>;
  next: Promise<IteratorResult<TimerEvent>>;
}

type Step = Record<string, Value>;

export class Scenario {
  private readonly values: Args;
  private readonly streams = new Map<string, Stream>();
  private readonly inbox = new Map<number, InboxCall>();

  constructor(private readonly rig: Rig) {
    this.values = { namespace: `c-${randomUUID().slice(0, 13)}`, receiver: rig.dev.receiver };
  }

  async run(steps: Step[]): Promise<void> {
    await this.rig.forget();
    try {
      for (const [number, step] of steps.entries()) {
        await this.step(this.filled(step)).catch((error) => fail(`step ${number + 1}: ${error}`));
      }
    } finally {
      for (const name of this.streams.keys()) this.stop(name);
    }
  }

  filled(value: Value): Value {
    if (Array.isArray(value)) return value.map((part) => this.filled(part));
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, this.filled(part)]));
    }
    if (typeof value !== "string") return value;
    const whole = /^\$\{([^}]*)\}$/.exec(value);
    return whole ? this.lookUp(whole[1]!) : value.replace(/\$\{([^}]*)\}/g, (_, path: string) => String(this.lookUp(path)));
  }

  private lookUp(path: string): Value {
    return path.split(".").reduce((found: Value, name) => found[name], this.values);
  }

  private async step(step: Step): Promise<void> {
    const [kind] = Object.keys(step);
    const result = await this.perform(kind!, step[kind!], step);
    if (step.as) this.values[step.as] = result;
    if ("expect" in step) match(step.expect, result);
  }

  private async perform(kind: string, value: Value, step: Step): Promise<Value> {
    switch (kind) {
      case "call":
        return this.call(value, step);
      case "advance":
        return wire(await this.rig.dev.advance(value));
      case "answers":
        return this.rig.dev.inbox.answer(...value);
      case "inbox":
        return this.calls(value);
      case "verify": {
        const call = await this.rig.dev.verify(this.inbox.get(value.seq)!);
        return { ...wire(call), body: undefined, lateness_ms: call.latenessMs };
      }
      case "watch":
        return this.watch(value, step.as);
      case "events":
        return this.events(value, step);
      case "stop":
        return this.stop(value);
      case "faults":
        return this.rig.control("PUT", "faults", value);
      case "requests":
        return this.requests(value, step.headers ?? {});
      case "same":
        return match(value[1], value[0]);
      case "contains":
        return value[0].includes(value[1]) || fail(`${value[1]} is not in ${value[0]}`);
      default:
        return fail(`no such step: ${kind}`);
    }
  }

  private async call(name: string, step: Step): Promise<Value> {
    const { traceparent, ...args } = step.args ?? {};
    const client = this.rig.client({
      ...(step.api_key ? { apiKey: step.api_key } : {}),
      ...(step.timeout_ms ? { timeout: step.timeout_ms } : {}),
      ...(traceparent ? { trace: () => ({ traceparent }) } : {}),
    });
    const began = performance.now();
    const outcome = await Promise.resolve()
      .then(() => CALLS[name]!(client, args))
      .then(
        (result) => ({ result }),
        (error) => ({ error }),
      );
    const took = performance.now() - began;
    if (took < (step.took_ms_min ?? 0) || took > (step.took_ms_max ?? 60_000)) fail(`${name} took ${took} ms`);
    if ("result" in outcome) return step.error ? fail(`${name} succeeded`) : wire(outcome.result);
    if (!step.error || !(outcome.error instanceof TimerError)) throw outcome.error;
    match(step.error, shown(outcome.error), "error");
  }

  private async calls({ path, count }: { path: string; count: number }): Promise<Value> {
    const inbox = this.rig.dev.inbox;
    const calls = count > 0 ? await inbox.waitFor({ path, count }) : await inbox.calls({ path });
    if (calls.length !== count) fail(`${calls.length} calls, not ${count}`);
    for (const call of calls) this.inbox.set(call.seq, call);
    return wire(calls);
  }

  private async watch(args: Args, name: string): Promise<void> {
    const abort = new AbortController();
    const events = CALLS["timers.watch"]!(this.rig.client(), { ...args, signal: abort.signal }) as AsyncIterator<TimerEvent>;
    const before = await this.streamsAnswered();
    this.streams.set(name, { abort, events, next: events.next() });
    while ((await this.streamsAnswered()) === before) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  private async streamsAnswered(): Promise<number> {
    return (await this.rig.requests()).filter(({ path, answered }) => path === "/events" && answered).length;
  }

  private async events(name: string, step: Step): Promise<Value> {
    const stream = this.streams.get(name)!;
    const read: Value[] = [];
    while (step.until || read.length < step.expect.length) {
      const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error("no event")), WAIT_MS_MAX).unref());
      const { value } = await Promise.race([stream.next, late]);
      stream.next = stream.events.next();
      read.push(wire(value));
      if (step.until && matches(step.until, read.at(-1))) break;
    }
    return read;
  }

  private stop(name: string): void {
    const stream = this.streams.get(name);
    this.streams.delete(name);
    stream?.next.catch(() => {});
    stream?.abort.abort();
  }

  private async requests({ method, path, count }: Args, headers: Args): Promise<void> {
    const seen = (await this.rig.requests()).filter((request) => request.method === method && request.path === path);
    if (seen.length !== count) fail(`${seen.length} requests, not ${count}`);
    match(headers, seen.at(-1)?.headers ?? {}, "headers");
  }
}

function matches(expected: Value, actual: Value): boolean {
  try {
    match(expected, actual);
    return true;
  } catch {
    return false;
  }
}
