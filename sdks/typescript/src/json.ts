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

/** Members that are not ours to read. */
const EXACT = new Set(["payload", "metadata", "filter"]);
/** Members whose own names are the client's. */
const NAMED_BY_CLIENT = new Set(["headers"]);
const DURATIONS = new Set([
  ...["timeout", "delay", "initialInterval", "maxInterval", "maxDuration"],
  ...["expiresAfter", "postponeMax", "spread", "step", "by", "wait"],
]);

const BLANKS = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const SCALAR = /-?[0-9][-+.eE0-9]*|true|false|null/y;

/** The value of JSON text, with exact members as `Json` and other names in camelCase. `SyntaxError` if it is none. */
export function decode<T>(text: string): T {
  const reader = new Reader(text);
  const value = reader.value(true);
  if (reader.peek() !== undefined) reader.refuse();
  return value as T;
}

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  value(ours: boolean): unknown {
    const mark = this.peek();
    if (mark === "{") return this.object(ours);
    if (mark === "[") return this.array(ours);
    return JSON.parse(this.token(mark === '"' ? STRING : SCALAR));
  }

  /** The character that comes next, blanks aside. */
  peek(): string | undefined {
    BLANKS.lastIndex = this.at;
    BLANKS.exec(this.text);
    this.at = BLANKS.lastIndex;
    return this.text[this.at];
  }

  refuse(): never {
    throw new SyntaxError(`unexpected text at position ${this.at} of the answer`);
  }

  private object(ours: boolean): Record<string, unknown> {
    const members: Record<string, unknown> = {};
    this.at += 1;
    for (let end = this.peek() === "}"; !end; end = this.ends("}")) {
      if (this.peek() !== '"') this.refuse();
      const name = JSON.parse(this.token(STRING)) as string;
      if (this.peek() !== ":") this.refuse();
      this.at += 1;
      members[ours ? camel(name) : name] =
        ours && EXACT.has(name) ? this.exact() : this.value(ours && !NAMED_BY_CLIENT.has(name));
    }
    this.at += 1;
    return members;
  }

  private array(ours: boolean): unknown[] {
    const elements: unknown[] = [];
    this.at += 1;
    for (let end = this.peek() === "]"; !end; end = this.ends("]")) elements.push(this.value(ours));
    this.at += 1;
    return elements;
  }

  private exact(): Json | null {
    this.peek();
    const start = this.at;
    this.value(false);
    const text = this.text.slice(start, this.at);
    return text === "null" ? null : new Json(text);
  }

  private ends(mark: string): boolean {
    const next = this.peek();
    if (next === ",") this.at += 1;
    else if (next !== mark) this.refuse();
    return next === mark;
  }

  private token(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) this.refuse();
    this.at = pattern.lastIndex;
    return found[0];
  }
}

/** The JSON text of an argument. What is `undefined` is left out, `null` is written. */
export function encode(value: unknown): string {
  if (value instanceof Json) return value.text;
  if (value instanceof Date) return JSON.stringify(formatInstant(value));
  if (Array.isArray(value)) return `[${value.map(encode).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(snake(name))}:${encodeMember(name, member)}`).join(",")}}`;
}

function encodeMember(name: string, value: unknown): string {
  if (value instanceof Json) return value.text;
  if (DURATIONS.has(name) && value !== null) return JSON.stringify(formatDuration(value as Duration));
  return name === "payload" || name === "metadata" || NAMED_BY_CLIENT.has(name) ? JSON.stringify(value) : encode(value);
}

/** A query string: lists with commas between, `metadata` as its paths, durations and instants as text. */
export function query(parameters: object): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null) continue;
    if (name === "metadata")
      for (const [path, text] of Object.entries(value as object)) search.set(`metadata.${path}`, String(text));
    else if (value instanceof Date) search.set(snake(name), formatInstant(value));
    else search.set(snake(name), DURATIONS.has(name) ? formatDuration(value as Duration) : String(value));
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
