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
}

export class Transport {
  readonly #url: string;
  readonly #apiKey: string;
  readonly #timeout: number;
  readonly #retries: number;
  readonly #trace: () => Record<string, string>;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.#url = (options.url || environment("TIMER_URL") || "http://127.0.0.1:8080").replace(/\/+$/, "");
    this.#apiKey = options.apiKey || environment("TIMER_API_KEY") || environment("API_KEY") || "";
    this.#timeout = options.timeout ?? 10_000;
    this.#retries = options.retries ?? 3;
    this.#trace = options.trace ?? currentTrace;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** The result of a call: `data` of the envelope. */
  async send<T>(call: Call): Promise<T> {
    const deadline = Date.now() + this.#timeout;
    const idempotent = call.idempotent ?? (call.method !== "POST" && call.revision === undefined);
    const init = this.#request(call);
    let pauseMax = FIRST_PAUSE_MS_MAX;
    for (let left = idempotent ? this.#retries : 0; ; left -= 1) {
      let error: TimerError;
      try {
        const response = await this.open(call, AbortSignal.timeout(Math.max(deadline - Date.now(), 1)), init);
        const text = await response.text();
        const data = response.ok ? dataOf<T>(text) : undefined;
        if (data !== undefined) return data;
        error = fromAnswer(response.status, response.headers, text, Date.now());
      } catch (cause) {
        error = unreachable(cause);
      }
      const pause = Math.max(error.retryAfterMs ?? 0, Math.random() * pauseMax);
      if (left === 0 || !PASSING.includes(error.kind) || Date.now() + pause >= deadline) throw error;
      pauseMax = Math.min(2 * pauseMax, PAUSE_MS_MAX);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** An answer whose body has not been read. */
  open(call: Call, signal: AbortSignal, init: RequestInit = this.#request(call)): Promise<Response> {
    return this.#fetch(this.#url + call.path + query(call.query ?? {}), { ...init, signal });
  }

  #request(call: Call): RequestInit {
    const headers: Record<string, string> = {
      "x-api-key": this.#apiKey,
      ...(call.traced && this.#trace()),
      ...(call.body !== undefined && { "content-type": "application/json" }),
      ...(call.revision !== undefined && { "if-match": `"${call.revision}"` }),
      ...call.headers,
    };
    return { method: call.method, headers, body: encode(call.body) };
  }
}

/** What may be gone when the call is made again. */
const PASSING = ["unreachable", "unavailable", "too_many"];

/** `data` of an envelope, which may be `null`; `undefined` if it is none. */
function dataOf<T>(text: string): T | undefined {
  try {
    return decode<{ data: T }>(text).data;
  } catch {
    return undefined;
  }
}

/** The error of a call that got no answer. */
export function unreachable(cause: unknown): Unreachable {
  const reason = cause instanceof Error ? (cause.cause instanceof Error ? cause.cause : cause).message : String(cause);
  return new Unreachable(`no answer: ${reason}`, { cause });
}

function environment(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];
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
