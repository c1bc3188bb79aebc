// JSON that is kept as the text it is. `JSON.parse` turns 12345678901234567890 into another number and 1.10 into 1.1. Payloads and
// metadata belong to the program that wrote them, so they are cut out of answers as text, and put into requests as text. All other
// names are snake_case there and camelCase here.

import { type Duration, formatDuration, formatInstant } from "./time.js";

/** Exact JSON text. As an argument it is sent byte for byte; in an answer it is what the service keeps. */
export class Json {
  constructor(readonly text: string) {}

  /** Parses it with `JSON.parse`, which loses digits that a `number` cannot hold. */
  parse<T = unknown>(): T {
    return JSON.parse(this.text) as T;
  }

  toJSON(): unknown {
    return this.parse();
  }
}

/** Members that are not ours to read; `MEMBER` has them, too. */
const EXACT = /^(payload|metadata|filter)$/;
/** Members whose own names are the client's. */
const NAMED_BY_CLIENT = "headers";
const DURATIONS = /^(timeout|delay|.+Interval|maxDuration|expiresAfter|postponeMax|spread|step|by|wait)$/;

// The beginning of an exact member, or else a text, so that what looks like one within a text is passed over.
const MEMBER = /"(?:payload|metadata|filter)"\s*:\s*|"(?:[^"\\]|\\.)*"/g;
const MARK = /"(?:[^"\\]|\\.)*"|[[{]|[\]}]|,/g;

/** The value of JSON text, with exact members as `Json` and other names in camelCase. `SyntaxError` if it is none. */
export function decode<T>(text: string): T {
  return shaped(JSON.parse(text), true, exactTexts(text)) as T;
}

/** The texts of exact members, in the order in which they stand. */
function* exactTexts(text: string): Generator<string, undefined, undefined> {
  MEMBER.lastIndex = 0;
  for (let found = MEMBER.exec(text); found; found = MEMBER.exec(text)) {
    if (found[0].endsWith('"')) continue;
    const start = MEMBER.lastIndex;
    const end = endOf(text, start);
    yield text.slice(start, end).trim();
    MEMBER.lastIndex = end;
  }
}

/** Where the value ends that starts there: before a comma or a bracket that is not its own. */
function endOf(text: string, start: number): number {
  let depth = 0;
  MARK.lastIndex = start;
  for (let mark = MARK.exec(text); mark; mark = MARK.exec(text)) {
    if (depth === 0 && ",]}".includes(mark[0])) return mark.index;
    if ("[{".includes(mark[0])) depth += 1;
    if ("]}".includes(mark[0])) depth -= 1;
  }
  return text.length;
}

/** Members of our own objects are in the order of the text, so that the exact ones are met in theirs. */
function shaped(value: unknown, ours: boolean, exact: Iterator<string>): unknown {
  if (Array.isArray(value)) return value.map((part) => shaped(part, ours, exact));
  if (typeof value !== "object" || value === null) return value;
  const member = ([name, part]: [string, unknown]) => {
    if (!EXACT.test(name)) return [ours ? camel(name) : name, shaped(part, ours && name !== NAMED_BY_CLIENT, exact)];
    const text = exact.next().value;
    return [name, !ours || part === null ? part : new Json(text)];
  };
  return Object.fromEntries(Object.entries(value).map(member));
}

/** An instant or a duration as text; anything else as it is. */
function native(name: string, value: unknown): unknown {
  if (value instanceof Date) return formatInstant(value);
  return DURATIONS.test(name) && value !== null ? formatDuration(value as Duration) : value;
}

/** The JSON text of an argument. What is `undefined` is left out, `null` is written. */
export function encode(argument: unknown, name = ""): string {
  const value = native(name, argument);
  if (value instanceof Json) return value.text;
  if (Array.isArray(value)) return `[${value.map((part) => encode(part)).join(",")}]`;
  const isTheirs = name === "payload" || name === "metadata" || name === NAMED_BY_CLIENT;
  if (typeof value !== "object" || value === null || isTheirs) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `"${snake(name)}":${encode(member, name)}`).join(",")}}`;
}

/** A query string: lists with commas between, `metadata` as its paths, durations and instants as text. */
export function query(parameters: object): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (name === "metadata") for (const [path, text] of Object.entries(value ?? {})) search.set(`metadata.${path}`, String(text));
    else if (value !== undefined && value !== null) search.set(snake(name), String(native(name, value)));
  }
  const text = search.toString();
  return text && `?${text}`;
}

/** `ok_10m` is `ok10m`. */
function camel(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
