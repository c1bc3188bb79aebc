import { decode } from "./json.js";
import type * as m from "./models.js";
import { type Duration, newId } from "./time.js";
import { type Call, type ClientOptions, Transport } from "./transport.js";

const segments = (...parts: string[]) => parts.map((part) => `/${encodeURIComponent(part)}`).join("");

function timerPath(target: m.Target, action = ""): string {
  if (typeof target === "string") return `/timers${segments(target)}${action}`;
  return `/namespaces${segments(target.namespace ?? "default")}/timers${segments(target.key)}${action}`;
}

function callback(given: m.Callback | null | undefined): object | null | undefined {
  return given && { type: "http", ...given };
}

/** The body of a create. One without a key gets an id here, and keeps it over all retries. */
async function newTimer(timer: m.NewTimer): Promise<object> {
  const { in: delay, at: executeAt, url, payload, headers, timeout, protocol, ...rest } = timer;
  if ((delay === undefined) === (executeAt === undefined)) throw new TypeError("a timer needs either `in` or `at`");
  if (url === undefined && rest.callback === undefined) throw new TypeError("a timer needs a `url` or a `callback`");
  const id = rest.id ?? (rest.key === undefined ? await newId() : undefined);
  const called = rest.callback ?? { url: url!, payload, headers, timeout, protocol };
  return { ...rest, id, delay, executeAt, ...callbacks({ ...rest, callback: called as m.Callback }) };
}

function callbacks(given: Pick<m.Changes, "callback" | "onSuccess" | "onFailure">): object {
  return {
    callback: callback(given.callback),
    onSuccess: callback(given.onSuccess),
    onFailure: callback(given.onFailure),
  };
}

interface AtRevision {
  /** Only if the timer has this revision; else a `Conflict`. */
  revision?: number;
}

export class Timers {
  constructor(private readonly transport: Transport) {}

  /** Creates a timer. */
  async create(timer: m.NewTimer): Promise<m.Timer> {
    const body = await newTimer(timer);
    return this.transport.send({ method: "POST", path: "/timers", body, idempotent: true, traced: true });
  }

  /** Creates up to 1,000 timers at once. Each has a result of its own: one that is refused stops no other. */
  async createMany(timers: m.NewTimer[]): Promise<m.BatchResult[]> {
    const body = { timers: await Promise.all(timers.map(newTimer)) };
    const call: Call = { method: "POST", path: "/timers/batch", body, idempotent: true, traced: true };
    return (await this.transport.send<{ results: m.BatchResult[] }>(call)).results;
  }

  /** Shows a timer with everything that is known about it. */
  get(timer: m.Target): Promise<m.TimerDetail> {
    return this.transport.send({ method: "GET", path: timerPath(timer) });
  }

  getByKey(key: string, namespace = "default"): Promise<m.TimerDetail> {
    return this.get({ key, namespace });
  }

  /** All timers that match, fetched in pages of `limit` as they are needed. */
  async *list(filter: m.Filter = {}, sorting: m.Sorting = {}): AsyncGenerator<m.Timer, void, undefined> {
    let cursor: string | null | undefined;
    do {
      const page: m.Page = await this.page(filter, { ...sorting, cursor });
      yield* page.timers;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  /** One page of a list; `nextCursor` leads to the next, also after an empty page. */
  page(filter: m.Filter = {}, paging: m.Sorting & { offset?: number; cursor?: string | null | undefined } = {}): Promise<m.Page> {
    return this.transport.send({ method: "GET", path: "/timers", query: { ...filter, ...paging } });
  }

  count(filter: m.Filter = {}): Promise<m.Count> {
    return this.transport.send({ method: "GET", path: "/timers/count", query: filter });
  }

  /** The lines of an export of everything that matches, while they arrive. */
  export(filter: m.Filter = {}, format: "ndjson" | "json" | "csv" = "ndjson"): AsyncGenerator<string, void, undefined> {
    return this.transport.lines({ method: "GET", path: `/timers.${format}`, query: filter });
  }

  /** What happens to timers that match, from now on or `after` an event: the `eventId` of the last one resumes a stream. */
  async *watch(
    filter: m.Filter = {},
    options: { types?: m.EventKind[]; after?: string; signal?: AbortSignal } = {},
  ): AsyncGenerator<m.TimerEvent, void, undefined> {
    const { signal, ...more } = options;
    const headers = { accept: "application/x-ndjson" };
    for await (const line of this.transport.lines({
      method: "GET",
      path: "/events",
      query: { ...filter, ...more },
      headers,
      signal,
    })) {
      const event = decode<m.TimerEvent | { type: "position" }>(line);
      if (event.type !== "position") yield event;
    }
  }

  /** Changes a pending or paused timer. */
  update(timer: m.Target, changes: m.Changes, { revision }: AtRevision = {}): Promise<m.Timer> {
    const { in: delay, at: executeAt, ...rest } = changes;
    const body = { ...rest, delay, executeAt, ...callbacks(changes) };
    return this.transport.send({ method: "PUT", path: timerPath(timer), body, revision });
  }

  /** Cancels a pending or paused timer; once this has returned, it never fires. */
  cancel(timer: m.Target, { revision }: AtRevision = {}): Promise<m.Timer> {
    return this.transport.send({ method: "DELETE", path: timerPath(timer), revision });
  }

  /** Makes a pending timer due now. */
  fire(timer: m.Target, { revision }: AtRevision = {}): Promise<m.Timer> {
    return this.act(timer, "/fire", revision);
  }

  /** Tries a failed or expired timer again. */
  retry(timer: m.Target, { revision }: AtRevision = {}): Promise<m.Timer> {
    return this.act(timer, "/retry", revision);
  }

  /** Postpones a timer by its own delay, or the one given; one that has ended begins anew. */
  ping(timer: m.Target, { revision, delay }: AtRevision & { delay?: Duration } = {}): Promise<m.Timer> {
    return this.act(timer, "/ping", revision, delay === undefined ? undefined : { delay });
  }

  /** Takes a pending timer out of what is due. */
  pause(timer: m.Target, { revision, note }: AtRevision & { note?: string } = {}): Promise<m.Timer> {
    return this.act(timer, "/pause", revision, note === undefined ? undefined : { note });
  }

  /** Puts a paused timer back; `missed` says what becomes of one that was due meanwhile. */
  resume(timer: m.Target, { revision, missed }: AtRevision & { missed?: "fire" | "expire" } = {}): Promise<m.Timer> {
    return this.act(timer, "/resume", revision, missed === undefined ? undefined : { missed });
  }

  /** The last attempts of a timer, the oldest first. */
  async attempts(timer: m.Target): Promise<m.Attempt[]> {
    const call: Call = { method: "GET", path: timerPath(timer, "/attempts") };
    return (await this.transport.send<{ attempts: m.Attempt[] }>(call)).attempts;
  }

  /** Cancels pending timers by namespace, prefix of the key and metadata; none of them if more than `expectedMax` match. */
  cancelMatching(matching: {
    expectedMax: number;
    namespace?: string;
    keyPrefix?: string;
    metadata?: object;
    status?: "pending";
  }): Promise<m.Canceled> {
    return this.transport.send({ method: "POST", path: "/timers/cancel", body: matching });
  }

  /** Changes every timer that matches, or none if more than `expectedMax` do. Beyond 1,000 it goes on as an operation. */
  bulk(
    action: m.Action,
    filter: m.Filter,
    options: { expectedMax: number; set?: m.RescheduleTo },
  ): Promise<m.BulkChanged | m.BulkStarted> {
    return this.transport.send({ method: "POST", path: "/timers/bulk", body: { action, filter, ...options } });
  }

  /** Counts what a bulk change would meet, and changes nothing. */
  preview(action: m.Action, filter: m.Filter, set?: m.RescheduleTo): Promise<m.BulkPreview> {
    return this.transport.send({ method: "POST", path: "/timers/bulk", body: { action, filter, set, dryRun: true } });
  }

  private act(timer: m.Target, action: string, revision?: number, body?: object): Promise<m.Timer> {
    return this.transport.send({ method: "POST", path: timerPath(timer, action), body, revision });
  }
}

/** Bulk changes of many timers, which go on in the background. */
export class Operations {
  constructor(private readonly transport: Transport) {}

  async list(): Promise<m.Operation[]> {
    return (await this.transport.send<{ operations: m.Operation[] }>({ method: "GET", path: "/operations" })).operations;
  }

  get(id: string): Promise<m.Operation> {
    return this.transport.send({ method: "GET", path: `/operations${segments(id)}` });
  }

  /** Stops a bulk change; what it has changed stays so. */
  stop(id: string): Promise<m.Operation> {
    return this.transport.send({ method: "DELETE", path: `/operations${segments(id)}` });
  }
}

/** Timers that are counted and canceled together. */
export class Groups {
  constructor(private readonly transport: Transport) {}

  get(group: string, namespace = "default"): Promise<m.Group> {
    return this.transport.send({ method: "GET", path: `/groups${segments(namespace, group)}` });
  }

  cancel(group: string, namespace = "default"): Promise<m.Canceled> {
    return this.transport.send({ method: "DELETE", path: `/groups${segments(namespace, group)}` });
  }
}

/** API keys. */
export class Keys {
  constructor(private readonly transport: Transport) {}

  /** Issues a key; `null` opens all namespaces. Its secret is in this answer alone. */
  create(key: { name: string; namespaces: string[] | null; rights: m.Rights }): Promise<m.IssuedKey> {
    return this.transport.send({ method: "POST", path: "/keys", body: key });
  }

  async list(): Promise<m.ApiKey[]> {
    return (await this.transport.send<{ keys: m.ApiKey[] }>({ method: "GET", path: "/keys" })).keys;
  }

  revoke(id: string): Promise<null> {
    return this.transport.send({ method: "DELETE", path: `/keys${segments(id)}` });
  }
}

export class Stats {
  constructor(private readonly transport: Transport) {}

  /** How many timers are due when. */
  due(window: m.Window = {}): Promise<m.DueStats> {
    return this.transport.send({ method: "GET", path: "/stats/due", query: window });
  }

  /** What was called when, and how late. */
  fired(window: m.Window = {}): Promise<m.FiredStats> {
    return this.transport.send({ method: "GET", path: "/stats/fired", query: window });
  }
}

/**
 * A client of a Timer Platform.
 *
 *     const client = new TimerClient();
 *     await client.timers.create({ url: "https://shop.example/hooks/cart", in: "15m", payload: { cart: 4711 } });
 */
export class TimerClient {
  readonly timers: Timers;
  readonly operations: Operations;
  readonly groups: Groups;
  readonly keys: Keys;
  readonly stats: Stats;
  /** For calls that this class does not know. */
  readonly transport: Transport;

  constructor(options: ClientOptions = {}) {
    this.transport = new Transport(options);
    this.timers = new Timers(this.transport);
    this.operations = new Operations(this.transport);
    this.groups = new Groups(this.transport);
    this.keys = new Keys(this.transport);
    this.stats = new Stats(this.transport);
  }

  /** How the receivers are. */
  destinations(namespace?: string | string[]): Promise<m.Destinations> {
    return this.transport.send({ method: "GET", path: "/destinations", query: { namespace } });
  }

  namespaces(): Promise<m.Namespaces> {
    return this.transport.send({ method: "GET", path: "/namespaces" });
  }

  /** The nodes that share the work. */
  cluster(): Promise<m.Cluster> {
    return this.transport.send({ method: "GET", path: "/cluster" });
  }

  /** What the API key of this client opens. */
  whoami(): Promise<m.Caller> {
    return this.transport.send({ method: "GET", path: "/whoami" });
  }

  health(): Promise<m.Health> {
    return this.transport.send({ method: "GET", path: "/healthz" });
  }

  /** Whether the service answers at all. */
  ping(): Promise<null> {
    return this.transport.send({ method: "GET", path: "/ping" });
  }
}
