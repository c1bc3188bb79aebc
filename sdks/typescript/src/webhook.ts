// For receivers: verifying calls (Standard Webhooks), what a call says, and answers of the `timer` protocol.

import { formatInstant, type Instant, webCrypto } from "./time.js";

const SECRET_BYTES_MIN = 24;
const TOLERANCE_MS = 5 * 60 * 1000;

/** A request that is no call of the service, is too old, or was changed on its way. Answer it with 401. */
export class InvalidCall extends Error {
  override readonly name = "InvalidCall";
}

export type HeadersLike = Headers | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  /** How far the time of the call may be from now; five minutes unless given. */
  toleranceMs?: number;
  /** In milliseconds since 1970. */
  now?: number;
}

/** A call of a timer, once it is verified. */
export class Call {
  constructor(
    /** The idempotency key: the same for every attempt of one due time, so that repetitions can be dropped. */
    readonly id: string,
    readonly timerId: string,
    readonly namespace: string,
    readonly attempt: number,
    /** RFC 3339, as every instant. */
    readonly scheduledAt: string,
    /** To the second. */
    readonly sentAt: string,
    readonly correlationId: string | undefined,
    /** The W3C trace context of the call. */
    readonly traceparent: string | undefined,
    readonly body: Uint8Array,
  ) {}

  /** How long after its due time the call was sent, never below zero. */
  get latenessMs(): number {
    return Math.max(0, Date.parse(this.sentAt) - Date.parse(this.scheduledAt));
  }

  text(): string {
    return new TextDecoder().decode(this.body);
  }

  /** The payload. */
  json<T = unknown>(): T {
    return JSON.parse(this.text()) as T;
  }
}

/**
 * The call that these headers and raw bytes are, or an `InvalidCall`. `secrets` are one or several `whsec_…`: two while one replaces
 * the other.
 */
export async function verify(
  headers: HeadersLike,
  body: Uint8Array | string,
  secrets: string | string[],
  options: VerifyOptions = {},
): Promise<Call> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  await check(headers, bytes, secrets, options);
  return readCall(headers, bytes);
}

/** Refuses what is not signed with one of the secrets, in constant time, or not about now. */
export async function check(
  headers: HeadersLike,
  body: Uint8Array,
  secrets: string | string[],
  { toleranceMs = TOLERANCE_MS, now = Date.now() }: VerifyOptions = {},
): Promise<void> {
  const { subtle } = await webCrypto();
  const keys = await Promise.all([secrets].flat().map(hmacKey));
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = header(headers, name);
    if (value === undefined) throw new InvalidCall(`the header ${name} is missing`);
    return value;
  }) as [string, string, string];
  if (!/^\d{1,12}$/.test(timestamp)) throw new InvalidCall("webhook-timestamp is not a number of seconds");
  if (Math.abs(now - Number(timestamp) * 1000) > toleranceMs) throw new InvalidCall("webhook-timestamp is too far from now");
  const signed = signedBytes(id, timestamp, body);
  const offered = signatures.split(/\s+/).map((text) => (text.startsWith("v1,") ? fromBase64(text.slice(3)) : undefined));
  const checks = offered.flatMap((signature) => keys.map((key) => !!signature && subtle.verify("HMAC", key, signature, signed)));
  if (!(await Promise.all(checks)).includes(true)) throw new InvalidCall("no signature is right");
}

/** The value of `webhook-signature`, for tests of receivers; `timestamp` is in Unix seconds. */
export async function sign(secret: string, id: string, timestamp: number, body: Uint8Array | string): Promise<string> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const { subtle } = await webCrypto();
  const signature = await subtle.sign("HMAC", await hmacKey(secret), signedBytes(id, String(timestamp), bytes));
  return `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`;
}

function signedBytes(id: string, timestamp: string, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const bytes = new Uint8Array(head.length + body.length);
  bytes.set(head);
  bytes.set(body, head.length);
  return bytes;
}

async function hmacKey(secret: string): Promise<CryptoKey> {
  const bytes = secret.startsWith("whsec_") ? fromBase64(secret.slice("whsec_".length)) : undefined;
  if (!bytes || bytes.length < SECRET_BYTES_MIN) {
    throw new TypeError(`a signing secret is whsec_ and at least ${SECRET_BYTES_MIN} bytes as base64`);
  }
  const { subtle } = await webCrypto();
  return subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function header(headers: HeadersLike, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const found = Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? found.join(",") : found;
}

/** What the headers of a verified call say. */
export function readCall(headers: HeadersLike, body: Uint8Array): Call {
  const required = (name: string) => {
    const value = header(headers, name);
    if (value === undefined) throw new InvalidCall(`the header ${name} of a timer's call is missing`);
    return value;
  };
  const attempt = Number(required("x-timer-attempt"));
  const sentAt = new Date(Number(required("webhook-timestamp")) * 1000);
  const scheduledAt = required("x-timer-scheduled-at");
  if (!Number.isInteger(attempt) || Number.isNaN(sentAt.getTime()) || Number.isNaN(Date.parse(scheduledAt))) {
    throw new InvalidCall("a header of a timer's call is malformed");
  }
  return new Call(
    required("webhook-id"),
    required("x-timer-id"),
    required("x-timer-namespace"),
    attempt,
    scheduledAt,
    sentAt.toISOString(),
    header(headers, "x-correlation-id"),
    header(headers, "traceparent"),
    body,
  );
}

/** An answer of a receiver, to be turned into one of its framework. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const answer = (members: object): Answer => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(members),
});

/** `timer` protocol: the work is done; the timer completes, or is due again at `next`. */
export function done(next?: Instant): Answer {
  return answer(next === undefined ? { ok: true } : { ok: true, nextExecuteAt: formatInstant(next) });
}

/** `timer` protocol: not yet; call again at that time, with attempts counted anew. */
export function again(at: Instant): Answer {
  return answer({ ok: false, nextExecuteAt: formatInstant(at) });
}

/** `timer` protocol: it failed; the retry policy of the timer says what follows. */
export function failed(): Answer {
  return answer({ ok: false });
}

/** Either protocol: it failed for now; the next attempt should not come before the pause is over. */
export function retryAfter(pauseMs: number): Answer {
  return { status: 503, headers: { "retry-after": String(Math.ceil(pauseMs / 1000)) }, body: "" };
}
