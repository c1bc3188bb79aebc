// Tests without waiting: a service of their own whose clock they move. For Node, Deno and Bun.
//
//     const dev = await TimerDev.start();
//     await dev.client.timers.create({ url: `${dev.receiver}/reminder`, in: "30d" });
//     await dev.advance({ by: "30d" });
//     const [call] = await dev.inbox.waitFor({ path: "/reminder" });
//     await dev.stop();
//
// The binary is `TIMER_BIN`, else `timer` on the path; it is never downloaded.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

import { TimerClient } from "./client.js";
import type { Duration, Instant } from "./time.js";
import { type Call, verify } from "./webhook.js";

const WAIT_MS_MAX = 10_000;
const STOP_MS_MAX = 10_000;
/** What of the environment reaches the service: no settings. */
const KEPT = ["PATH", "HOME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "RUST_LOG", "RUST_BACKTRACE"];

/** What happened while the clock was moved. */
export interface Advanced {
  now: string;
  fired: number;
  completed: number;
  failed: number;
  pending: number;
  next: string | null;
}

/** A call that the receiver of `timer dev` got. */
export interface InboxCall {
  seq: number;
  at: string;
  latenessMs: number | null;
  timerId: string | null;
  attempt: number | null;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  signatureValid: boolean | null;
  duplicateOf: number | null;
}

/** What the receiver answers: to one `path` or to all, the next `times` calls or every one. */
export interface InboxAnswer {
  path?: string;
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  delay?: Duration;
  times?: number;
  hang?: boolean;
}

export interface InboxQuery {
  path?: string;
  /** The id of a timer. */
  timer?: string;
  /** Only calls with a greater `seq`. */
  after?: number;
}

/** The receiver of `timer dev`. */
export class Inbox {
  constructor(private readonly client: TimerClient) {}

  /** The calls so far, the oldest first. With `wait`, an empty inbox is waited on. */
  async calls(query: InboxQuery & { wait?: Duration } = {}): Promise<InboxCall[]> {
    const call = { method: "GET", path: "/dev/inbox", query: { ...query, limit: 1000 } } as const;
    return (await this.client.transport.send<{ calls: InboxCall[] }>(call)).calls;
  }

  /** Waits until there are `count` calls (1 unless given), and returns all. */
  async waitFor({ count = 1, ...query }: InboxQuery & { count?: number } = {}): Promise<InboxCall[]> {
    const ends = Date.now() + WAIT_MS_MAX;
    const calls: InboxCall[] = [];
    while (calls.length < count) {
      if (Date.now() > ends) throw new Error(`${calls.length} of ${count} calls after ${WAIT_MS_MAX} ms`);
      const after = calls.at(-1)?.seq ?? query.after ?? 0;
      calls.push(...(await this.calls({ ...query, after, wait: "1s" })));
    }
    return calls;
  }

  /** Replaces all answers; without any, every call is answered with 200. */
  async answer(...answers: InboxAnswer[]): Promise<void> {
    await this.client.transport.send({ method: "PUT", path: "/dev/inbox/answers", body: { answers } });
  }

  async clear(): Promise<void> {
    await this.client.transport.send({ method: "DELETE", path: "/dev/inbox" });
  }
}

interface Ready {
  url: string;
  api_key: string;
  receiver: string;
  signing_secret: string;
}

/** A running `timer dev` with an empty store, for one test or many. Ends with `stop`, or with its `await using`. */
export class TimerDev {
  readonly url: string;
  readonly apiKey: string;
  readonly receiver: string;
  readonly signingSecret: string;
  readonly client: TimerClient;
  readonly inbox: Inbox;

  private constructor(
    private readonly child: ChildProcess,
    private readonly directory: string,
    ready: Ready,
  ) {
    this.url = ready.url;
    this.apiKey = ready.api_key;
    this.receiver = ready.receiver;
    this.signingSecret = ready.signing_secret;
    this.client = new TimerClient({ url: this.url, apiKey: this.apiKey, timeout: 60_000 });
    this.inbox = new Inbox(this.client);
  }

  /** Starts one; `flags` are further flags of `timer dev`. */
  static async start({ binary, flags = [] }: { binary?: string; flags?: string[] } = {}): Promise<TimerDev> {
    const named = binary ?? process.env.TIMER_BIN;
    const directory = await mkdtemp(join(tmpdir(), "timer-dev-"));
    const env = Object.fromEntries(KEPT.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
    const child = spawn(named ? resolve(named) : "timer", ["dev", "--port", "0", "--ready-json", ...flags], {
      cwd: directory,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stderr!.pipe(createWriteStream(join(directory, "log")));
    const line = await Promise.race([once(createInterface(child.stdout!), "line"), once(child, "exit").then(() => undefined)]);
    if (line) return new TimerDev(child, directory, JSON.parse(line[0] as string) as Ready);
    throw new Error(`\`timer dev\` did not start: ${(await readFile(join(directory, "log"), "utf8")).slice(-2000)}`);
  }

  /** Moves the clock, and fires in order what becomes due; returns when all of it has settled. */
  advance(to: { by: Duration } | { to: Instant } | { until: "next" | "idle" }): Promise<Advanced> {
    return this.client.transport.send({ method: "POST", path: "/dev/clock/advance", body: to });
  }

  /** The call as a receiver would take it, verified at the time at which it was sent. */
  verify(call: InboxCall): Promise<Call> {
    const now = Number(call.headers["webhook-timestamp"]) * 1000;
    return verify(call.headers, call.body, this.signingSecret, { now });
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = once(this.child, "exit");
      this.child.kill("SIGTERM");
      const kill = setTimeout(() => this.child.kill("SIGKILL"), STOP_MS_MAX);
      await ended;
      clearTimeout(kill);
    }
    await rm(this.directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
