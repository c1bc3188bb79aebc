// Durations, instants and `Retry-After`, as the service writes and reads them.

/** Milliseconds, or a text such as `90s`, `1h30m` or `PT15M`. */
export type Duration = number | string;
/** A `Date`, or RFC 3339 text. Answers have text, because a `Date` drops microseconds. */
export type Instant = Date | string;

const UNITS: [string, number][] = [
  ["d", 86_400_000_000],
  ["h", 3_600_000_000],
  ["m", 60_000_000],
  ["s", 1_000_000],
  ["ms", 1_000],
  ["us", 1],
];

/** `1h30m`; a text is taken as it is. */
export function formatDuration(duration: Duration): string {
  if (typeof duration === "string") return duration;
  if (!(duration >= 0 && duration < Infinity)) throw new RangeError(`not a duration: ${duration}`);
  let left = Math.round(duration * 1000);
  let text = "";
  for (const [unit, us] of UNITS) {
    const count = Math.floor(left / us);
    left %= us;
    if (count > 0) text += count + unit;
  }
  return text || "0s";
}

/** RFC 3339; a text is taken as it is. */
export function formatInstant(instant: Instant): string {
  return typeof instant === "string" ? instant : instant.toISOString();
}

/** How long `Retry-After` asks to wait, in milliseconds from `now` on, if it can be understood. */
export function parseRetryAfter(value: string | null, now: number): number | undefined {
  const text = (value ?? "").trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  if (!/^[A-Z][a-z]/.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** WebCrypto, which Node 18 does not have as a global. */
export async function webCrypto(): Promise<Crypto> {
  return globalThis.crypto ?? ((await import("node:crypto")).webcrypto as Crypto);
}

/** A UUIDv7: the time in milliseconds, then chance. It makes a create idempotent, so that it can be retried. */
export async function newId(): Promise<string> {
  const bytes = (await webCrypto()).getRandomValues(new Uint8Array(10));
  const hex = (number: number, digits: number) => number.toString(16).padStart(digits, "0");
  const time = hex(Date.now(), 12);
  const chance = Array.from(bytes, (byte) => hex(byte, 2)).join("");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${chance.slice(0, 3)}-${"89ab"[bytes[9]! & 3]}${chance.slice(3, 6)}-${chance.slice(6, 18)}`;
}
