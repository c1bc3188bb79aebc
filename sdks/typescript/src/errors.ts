// What can go wrong, one class for each thing that a program would do about it.

import { parseRetryAfter } from "./time.js";

export type ErrorKind =
  | "invalid"
  | "not_found"
  | "unauthorized"
  | "too_many"
  | "conflict"
  | "unavailable"
  | "unreachable"
  | "unexpected";

export interface ErrorDetails {
  /** The HTTP status, if there was an answer. */
  status?: number | undefined;
  /** The code of the service's envelope, if it was the service that answered. */
  code?: number | undefined;
  /** The field of the request that breaks a rule, if it is one field. */
  field?: string | undefined;
  /** How long the service asks to wait. */
  retryAfterMs?: number | undefined;
  /** Finds the request in the logs of the service. */
  requestId?: string | undefined;
  cause?: unknown;
}

/** A call that did not succeed, with everything that is known about why. */
export class TimerError extends Error {
  readonly kind: ErrorKind = "unexpected";
  declare readonly status: number | undefined;
  declare readonly code: number | undefined;
  declare readonly field: string | undefined;
  declare readonly retryAfterMs: number | undefined;
  declare readonly requestId: string | undefined;

  constructor(message: string, { cause, ...details }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    Object.assign(this, details);
  }
}

/** The request breaks a rule; `field` says where. */
export class Invalid extends TimerError {
  override readonly kind = "invalid";
}

/** There is no such timer, key or operation. */
export class NotFound extends TimerError {
  override readonly kind = "not_found";
}

/** The API key is unknown (401), or does not open this (403). */
export class Unauthorized extends TimerError {
  override readonly kind = "unauthorized";
}

/** More requests than the key may make; `retryAfterMs` says when the next may come. */
export class TooMany extends TimerError {
  override readonly kind = "too_many";
}

/** The timer is not as the request expects it: another revision, other content under the same key, or too many matches. */
export class Conflict extends TimerError {
  override readonly kind = "conflict";
}

/** The service or its store is away for now. */
export class Unavailable extends TimerError {
  override readonly kind = "unavailable";
}

/** No answer: the connection failed, or the deadline passed. Whether the service acted is unknown. */
export class Unreachable extends TimerError {
  override readonly kind = "unreachable";
}

/** An internal error of the service, or an answer that is none of its own. */
export class Unexpected extends TimerError {}

type ErrorClass = new (message: string, details: ErrorDetails) => TimerError;
const BY_CODE: Record<number, ErrorClass> = { 2: Invalid, 3: NotFound, 4: Unauthorized, 5: TooMany, 6: Conflict };
/** The codes that statuses stand for where there is no envelope. */
const CODES: Record<number, number> = { 400: 2, 404: 3, 401: 4, 403: 4, 429: 5, 409: 6, 412: 6 };
const AWAY = [408, 502, 503, 504];
const FIELD = /^(?:'([^']*)'|([^' ]+)) (?:must|is|cannot|may) /;

/** The error that an answer means. */
export function fromAnswer(status: number, headers: Headers, body: string, now: number): TimerError {
  const { code, message } = envelope(body);
  const Kind = BY_CODE[code ?? CODES[status] ?? 0] ?? (AWAY.includes(status) ? Unavailable : Unexpected);
  const named = Kind === Invalid ? FIELD.exec(message ?? "") : null;
  return new Kind(message ?? `status ${status} is not of the service`, {
    status,
    code,
    field: named?.[1] ?? named?.[2],
    retryAfterMs: parseRetryAfter(headers.get("retry-after"), now),
    requestId: headers.get("x-request-id") ?? undefined,
  });
}

function envelope(body: string): { code?: number; message?: string } {
  try {
    const { code, message } = JSON.parse(body) as { code?: unknown; message?: unknown };
    return typeof code === "number" && typeof message === "string" ? { code, message } : {};
  } catch {
    return {};
  }
}
