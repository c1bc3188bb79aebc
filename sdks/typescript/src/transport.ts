// Sending a request: deadline, retries, trace context, and what becomes of an answer.

import { fromAnswer, type TimerError, Unreachable } from "./errors.js";
import { decode, encode, query } from "./json.js";

const FIRST_PAUSE_MS_MAX = 100;
const PAUSE_MS_MAX = 2_000;

export interface ClientOptions {
  /** Else `TIMER_URL`, else `http://127.0.0.1:8080`. */
  url?: string;
  /** Else `TIMER_API_KEY`, then `API_KEY`. */
  apiKey?: string;
  /** The deadline of a call over all of its tries, in milliseconds; 10 seconds unless given. */
  timeout?: number;
  /** How often an idempotent call is tried again; 3 unless given. */
  retries?: number;
  /** The headers of the current trace context; those of OpenTelemetry unless given. */
  trace?: () => Record<string, string>;
  fetch?: typeof fetch;
}

export interface Call {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: object;
  body?: unknown;
  revision?: number | undefined;
  headers?: Record<string, string>;
  /** Whether it may be made again; unless given, every method but POST is, without a revision. */
  idempotent?: boolean;
  /** Whether the trace context goes with it. */
  traced?: boolean;
  signal?: AbortSignal | undefined;
}

export class Transport {
  private readonly url: string;
  private readonly apiKey: string;
  private readonly timeout: number;
  private readonly retries: number;
  private readonly trace: () => Record<string, string>;
  private readonly fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.url = (options.url ?? environment("TIMER_URL") ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
    this.apiKey = options.apiKey ?? environment("TIMER_API_KEY") ?? environment("API_KEY") ?? "";
    this.timeout = options.timeout ?? 10_000;
    this.retries = options.retries ?? 3;
    this.trace = options.trace ?? currentTrace;
    this.fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** The result of a call: `data` of the envelope. */
  async send<T>(call: Call): Promise<T> {
    const deadline = Date.now() + this.timeout;
    const idempotent = call.idempotent ?? (call.method !== "POST" && call.revision === undefined);
    const init = this.request(call);
    let pauseMax = FIRST_PAUSE_MS_MAX;
    for (let left = idempotent ? this.retries : 0; ; left -= 1) {
      const outcome = await this.attempt<T>(call, init, deadline);
      if ("data" in outcome) return outcome.data;
      const error = outcome.error;
      const pause = Math.max(error.retryAfterMs ?? 0, Math.random() * pauseMax);
      if (left === 0 || !PASSING.has(error.kind) || Date.now() + pause >= deadline) throw error;
      pauseMax = Math.min(2 * pauseMax, PAUSE_MS_MAX);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** The lines of an answer, while they arrive. It may take as long as it must. */
  async *lines(call: Call): AsyncGenerator<string, void, undefined> {
    const abort = new AbortController();
    const stop = () => abort.abort(call.signal?.reason);
    call.signal?.addEventListener("abort", stop, { once: true });
    try {
      const response = await this.fetch(this.address(call), { ...this.request(call), signal: abort.signal });
      if (!response.ok) throw fromAnswer(response.status, response.headers, await response.text(), Date.now());
      if (response.body) yield* splitLines(response.body);
    } catch (error) {
      if (call.signal?.aborted) return;
      throw isTimerError(error) ? error : unreachable(error);
    } finally {
      call.signal?.removeEventListener("abort", stop);
      abort.abort();
    }
  }

  private async attempt<T>(call: Call, init: RequestInit, deadline: number): Promise<{ data: T } | { error: TimerError }> {
    try {
      const signal = AbortSignal.timeout(Math.max(deadline - Date.now(), 1));
      const response = await this.fetch(this.address(call), { ...init, signal });
      const text = await response.text();
      const data = response.ok ? dataOf<T>(text) : undefined;
      return data ?? { error: fromAnswer(response.status, response.headers, text, Date.now()) };
    } catch (error) {
      return { error: unreachable(error) };
    }
  }

  private address(call: Call): string {
    return this.url + call.path + query(call.query ?? {});
  }

  private request(call: Call): RequestInit {
    const headers: Record<string, string> = {
      "x-api-key": this.apiKey,
      accept: "application/json",
      ...(call.traced ? this.trace() : {}),
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
      ...(call.revision === undefined ? {} : { "if-match": `"${call.revision}"` }),
      ...call.headers,
    };
    return { method: call.method, headers, ...(call.body === undefined ? {} : { body: encode(call.body) }) };
  }
}

/** What may be gone when the call is made again. */
const PASSING = new Set(["unreachable", "unavailable", "too_many"]);

function dataOf<T>(text: string): { data: T } | undefined {
  try {
    const envelope = decode<{ data: T } | null>(text);
    return typeof envelope === "object" && envelope !== null && "data" in envelope ? { data: envelope.data } : undefined;
  } catch {
    return undefined;
  }
}

function isTimerError(error: unknown): error is TimerError {
  return error instanceof Error && "kind" in error;
}

function unreachable(cause: unknown): Unreachable {
  const reason = cause instanceof Error ? (cause.cause instanceof Error ? cause.cause : cause).message : String(cause);
  return new Unreachable(`no answer from the service: ${reason}`, { cause });
}

async function* splitLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += decoder.decode(value, { stream: !done });
      const lines = rest.split("\n");
      rest = done ? "" : lines.pop()!;
      for (const line of lines) if (line !== "") yield line;
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function environment(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined;
}

interface OpenTelemetry {
  context?: { active(): unknown };
  propagation?: { inject(context: unknown, carrier: object, setter: object): void };
}

/** The trace context of OpenTelemetry, where a program has loaded its API; it is no dependency of this package. */
export function currentTrace(): Record<string, string> {
  const api = (globalThis as Record<symbol, unknown>)[Symbol.for("opentelemetry.js.api.1")] as OpenTelemetry | undefined;
  const headers: Record<string, string> = {};
  const set = (carrier: Record<string, string>, name: string, value: string) => {
    carrier[name] = value;
  };
  if (api?.context && api.propagation) api.propagation.inject(api.context.active(), headers, { set });
  return headers;
}
