// The calls of sdks/conformance/operations.json as calls of this SDK, and its results in the shape of the API.

import { exportTimers, watch } from "../src/events.js";
import { type Callback, type Changes, type Filter, Json, type NewTimer, type Target, type TimerClient } from "../src/index.js";

// biome-ignore lint/suspicious/noExplicitAny: arguments of scenarios are data
export type Value = any;
export type Args = Record<string, Value>;
type CallOf = (client: TimerClient, args: Args) => unknown;

const MS: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

export function duration(text: string): number {
  return [...text.matchAll(/(\d+)(ms|h|m|s)/g)].reduce((sum, [, count, unit]) => sum + Number(count) * MS[unit!]!, 0);
}

const camel = (name: string) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Names of arguments as this SDK has them; what is the client's own stays. */
function named(value: Value, name = ""): Value {
  if (name === "payload" || name === "metadata" || name === "headers") return value;
  if (Array.isArray(value)) return value.map((part) => named(part));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [camel(key), named(part, key)]));
}

/** Native types: milliseconds, and a `Date` where it is as fine as the text. */
function native(args: Args): Args {
  const { in: delay, at, ...rest } = named(args) as Args;
  const instant = typeof at === "string" && /\.\d{4,}/.test(at) ? at : at && new Date(at);
  return { ...rest, ...(delay ? { in: duration(delay) } : {}), ...(at ? { at: instant } : {}) };
}

function target(args: Args): [Target, Args] {
  const { id, key, namespace, ...rest } = args;
  return [key === undefined ? id : { key, namespace }, named(rest) as Args];
}

const FILTER = ["status", "namespace", "key", "keyPrefix", "group", "dueFrom", "dueTo", "createdFrom", "createdTo"];
FILTER.push("correlationId", "destination", "metadata", "error");

function split(args: Args): [Filter, Args] {
  const all = Object.entries(named(args) as Args);
  const part = (inFilter: boolean) => Object.fromEntries(all.filter(([name]) => FILTER.includes(name) === inFilter));
  return [part(true), part(false)];
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const ofTimer =
  (call: (client: TimerClient, timer: Target, rest: Args) => unknown): CallOf =>
  (client, args) =>
    call(client, ...target(args));

function bulk(client: TimerClient, { action, filter, set, dry_run, expected_max }: Args): unknown {
  const to = set && (set.at ? { executeAt: new Date(set.at) } : set);
  if (dry_run) return client.timers.preview(action, split(filter)[0], to);
  return client.timers.bulk(action, split(filter)[0], { expectedMax: expected_max, set: to });
}

const window = (args: Args) => ({ ...args, ...(args.from ? { from: new Date(args.from), to: new Date(args.to) } : {}) });

export const CALLS: Record<string, CallOf> = {
  "timers.create": (client, args) => client.timers.create(native(args) as NewTimer),
  "timers.create_many": async (client, { timers }) => ({ results: await client.timers.createMany(timers.map(native)) }),
  "timers.get": ofTimer((client, timer) => client.timers.get(timer)),
  "timers.list": (client, args) => all(client.timers.list(...split(args))),
  "timers.page": (client, args) => client.timers.page(...split(args)),
  "timers.count": (client, args) => client.timers.count(split(args)[0]),
  "timers.export": async (client, { format, ...args }) => (await all(exportTimers(client, split(args)[0], format))).join("\n"),
  "timers.update": (client, { set, ...args }) => {
    const [timer, rest] = target(args);
    return client.timers.update(timer, native(set) as Changes & { callback?: Callback }, rest);
  },
  "timers.cancel": ofTimer((client, timer, rest) => client.timers.cancel(timer, rest)),
  "timers.fire": ofTimer((client, timer, rest) => client.timers.fire(timer, rest)),
  "timers.retry": ofTimer((client, timer, rest) => client.timers.retry(timer, rest)),
  "timers.ping": ofTimer((client, timer, rest) => client.timers.ping(timer, rest)),
  "timers.pause": ofTimer((client, timer, rest) => client.timers.pause(timer, rest)),
  "timers.resume": ofTimer((client, timer, rest) => client.timers.resume(timer, rest)),
  "timers.attempts": ofTimer(async (client, timer) => ({ attempts: await client.timers.attempts(timer) })),
  "timers.cancel_matching": (client, args) => client.timers.cancelMatching(named(args)),
  "timers.bulk": bulk,
  "timers.watch": (client, { signal, ...args }) => watch(client, split(args)[0], { ...split(args)[1], signal }),
  "operations.list": async (client) => ({ operations: await client.operations.list() }),
  "operations.get": (client, { id }) => client.operations.get(id),
  "operations.stop": (client, { id }) => client.operations.stop(id),
  "groups.get": (client, { group, namespace }) => client.groups.get(group, namespace),
  "groups.cancel": (client, { group, namespace }) => client.groups.cancel(group, namespace),
  "keys.create": (client, args) => client.keys.create(args as Parameters<typeof client.keys.create>[0]),
  "keys.list": async (client) => ({ keys: await client.keys.list() }),
  "keys.revoke": (client, { id }) => client.keys.revoke(id),
  "stats.due": (client, args) => client.stats.due(window(args)),
  "stats.fired": (client, args) => client.stats.fired(window(args)),
  destinations: (client, { namespace }) => client.destinations(namespace),
  namespaces: (client) => client.namespaces(),
  cluster: (client) => client.cluster(),
  whoami: (client) => client.whoami(),
  health: (client) => client.health(),
  ping: (client) => client.ping(),
};

/** A result in the shape and with the names of the API. */
export function wire(value: unknown, name = ""): Value {
  if (value instanceof Json) return value.parse();
  if (Array.isArray(value)) return value.map((part) => wire(part));
  if (typeof value !== "object" || value === null) return value;
  const names = name === "headers" ? (key: string) => key : snake;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [names(key), wire(part, key)]));
}
