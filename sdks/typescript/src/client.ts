// The calls of the API. They are closures over the transport and not methods of classes: a bundle can shorten every name in them.

import type * as m from "./models.js";
import { type Duration, newId } from "./time.js";
import { type Call, type ClientOptions, Transport } from "./transport.js";

const segments = (...parts: string[]) => parts.map((part) => `/${encodeURIComponent(part)}`).join("");

function timerPath(target: m.Target, action = ""): string {
  if (typeof target === "string") return `/timers${segments(target)}${action}`;
  return `/namespaces${segments(target.namespace ?? "default")}/timers${segments(target.key)}${action}`;
}

/** What most calls are. */
function verbs(transport: Transport) {
  return [
    <T>(path: string, query?: object) => transport.send<T>({ method: "GET", path, query }),
    <T>(path: string, body?: unknown, more?: Partial<Call>) => transport.send<T>({ method: "POST", path, body, ...more }),
    <T>(path: string, revision?: number) => transport.send<T>({ method: "DELETE", path, revision }),
  ] as const;
}
type Verbs = ReturnType<typeof verbs>;

function callback(given: m.Callback | null | undefined): object | null | undefined {
  return given && { type: "http", ...given };
}

/** The body of a create. One without a key gets an id here, and keeps it over all retries. */
async function newTimer(timer: m.NewTimer): Promise<object> {
  const { in: delay, at: executeAt, url, payload, headers, timeout, protocol, ...rest } = timer;
  if ((delay === undefined) === (executeAt === undefined)) throw new TypeError("a timer needs `in` or `at`");
  if (url === undefined && rest.callback === undefined) throw new TypeError("a timer needs `url` or `callback`");
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

const CREATES = { idempotent: true, traced: true };

interface AtRevision {
  /** Only if the timer has this revision; else a `Conflict`. */
  revision?: number;
}

interface Paging extends m.Sorting {
  offset?: number;
  cursor?: string | null | undefined;
}

export type Timers = ReturnType<typeof timers>;
function timers([get, post, remove]: Verbs, transport: Transport) {
  const page = (filter: m.Filter = {}, paging: Paging = {}) => get<m.Page>("/timers", { ...filter, ...paging });
  const act = (timer: m.Target, action: string, { revision, ...body }: AtRevision & object = {}) =>
    post<m.Timer>(timerPath(timer, action), Object.keys(body).length > 0 ? body : undefined, { revision });
  return {
    /** Creates a timer. */
    create: async (timer: m.NewTimer): Promise<m.Timer> => post("/timers", await newTimer(timer), CREATES),

    /** Creates up to 1,000 timers at once. Each has a result of its own: one that is refused stops no other. */
    createMany: async (timers: m.NewTimer[]) => {
      const body = { timers: await Promise.all(timers.map(newTimer)) };
      return (await post<{ results: m.BatchResult[] }>("/timers/batch", body, CREATES)).results;
    },

    /** Shows a timer with everything that is known about it. */
    get: (timer: m.Target): Promise<m.TimerDetail> => get(timerPath(timer)),

    getByKey: (key: string, namespace?: string): Promise<m.TimerDetail> => get(timerPath({ key, namespace })),

    /** All timers that match, fetched in pages of `limit` as they are needed. */
    async *list(filter: m.Filter = {}, sorting: m.Sorting = {}): AsyncGenerator<m.Timer, void, undefined> {
      let cursor: string | null | undefined;
      do {
        const next = await page(filter, { ...sorting, cursor });
        yield* next.timers;
        cursor = next.nextCursor;
      } while (cursor !== null);
    },

    /** One page of a list; `nextCursor` leads to the next, also after an empty page. */
    page,

    count: (filter: m.Filter = {}): Promise<m.Count> => get("/timers/count", filter),

    /** Changes a pending or paused timer. */
    update: (timer: m.Target, changes: m.Changes, { revision }: AtRevision = {}): Promise<m.Timer> => {
      const { in: delay, at: executeAt, ...rest } = changes;
      const body = { ...rest, delay, executeAt, ...callbacks(changes) };
      return transport.send({ method: "PUT", path: timerPath(timer), body, revision });
    },

    /** Cancels a pending or paused timer; once this has returned, it never fires. */
    cancel: (timer: m.Target, options: AtRevision = {}): Promise<m.Timer> => remove(timerPath(timer), options.revision),

    /** Makes a pending timer due now. */
    fire: (timer: m.Target, options?: AtRevision) => act(timer, "/fire", options),

    /** Tries a failed or expired timer again. */
    retry: (timer: m.Target, options?: AtRevision) => act(timer, "/retry", options),

    /** Postpones a timer by its own delay, or the one given; one that has ended begins anew. */
    ping: (timer: m.Target, options?: AtRevision & { delay?: Duration }) => act(timer, "/ping", options),

    /** Takes a pending timer out of what is due. */
    pause: (timer: m.Target, options?: AtRevision & { note?: string }) => act(timer, "/pause", options),

    /** Puts a paused timer back; `missed` says what becomes of one that was due meanwhile. */
    resume: (timer: m.Target, options?: AtRevision & { missed?: "fire" | "expire" }) => act(timer, "/resume", options),

    /** The last attempts of a timer, the oldest first. */
    attempts: async (timer: m.Target) => (await get<{ attempts: m.Attempt[] }>(timerPath(timer, "/attempts"))).attempts,

    /** Cancels pending timers by namespace, prefix of the key and metadata; none of them if more than `expectedMax` match. */
    cancelMatching: (matching: {
      expectedMax: number;
      namespace?: string;
      keyPrefix?: string;
      metadata?: object;
      status?: "pending";
    }): Promise<m.Canceled> => post("/timers/cancel", matching),

    /** Changes every timer that matches, or none if more than `expectedMax` do. Beyond 1,000 it goes on as an operation. */
    bulk: (
      action: m.Action,
      filter: m.Filter,
      options: { expectedMax: number; set?: m.RescheduleTo },
    ): Promise<m.BulkChanged | m.BulkStarted> => post("/timers/bulk", { action, filter, ...options }),

    /** Counts what a bulk change would meet, and changes nothing. */
    preview: (action: m.Action, filter: m.Filter, set?: m.RescheduleTo): Promise<m.BulkPreview> =>
      post("/timers/bulk", { action, filter, set, dryRun: true }),
  };
}

export type Operations = ReturnType<typeof operations>;
function operations([get, , remove]: Verbs) {
  return {
    list: async () => (await get<{ operations: m.Operation[] }>("/operations")).operations,
    get: (id: string): Promise<m.Operation> => get(`/operations${segments(id)}`),
    /** Stops a bulk change; what it has changed stays so. */
    stop: (id: string): Promise<m.Operation> => remove(`/operations${segments(id)}`),
  };
}

export type Groups = ReturnType<typeof groups>;
function groups([get, , remove]: Verbs) {
  const path = (group: string, namespace = "default") => `/groups${segments(namespace, group)}`;
  return {
    get: (group: string, namespace?: string): Promise<m.Group> => get(path(group, namespace)),
    cancel: (group: string, namespace?: string): Promise<m.Canceled> => remove(path(group, namespace)),
  };
}

export type Keys = ReturnType<typeof keys>;
function keys([get, post, remove]: Verbs) {
  return {
    /** Issues a key; `null` opens all namespaces. Its secret is in this answer alone. */
    create: (key: { name: string; namespaces: string[] | null; rights: m.Rights }): Promise<m.IssuedKey> => post("/keys", key),
    list: async () => (await get<{ keys: m.ApiKey[] }>("/keys")).keys,
    revoke: (id: string): Promise<null> => remove(`/keys${segments(id)}`),
  };
}

export type Stats = ReturnType<typeof stats>;
function stats([get]: Verbs) {
  return {
    /** How many timers are due when. */
    due: (window: m.Window = {}): Promise<m.DueStats> => get("/stats/due", window),
    /** What was called when, and how late. */
    fired: (window: m.Window = {}): Promise<m.FiredStats> => get("/stats/fired", window),
  };
}

/**
 * A client of a Timer Platform.
 *
 *     const client = new TimerClient();
 *     await client.timers.create({ url: "https://shop.example/hooks/cart", in: "15m", payload: { cart: 4711 } });
 */
export class TimerClient {
  declare readonly timers: Timers;
  /** Bulk changes of many timers, which go on in the background. */
  declare readonly operations: Operations;
  /** Timers that are counted and canceled together. */
  declare readonly groups: Groups;
  /** API keys. */
  declare readonly keys: Keys;
  declare readonly stats: Stats;
  /** For calls that this class does not know. */
  declare readonly transport: Transport;
  readonly #get: Verbs[0];

  constructor(options: ClientOptions = {}) {
    const transport = new Transport(options);
    const calls = verbs(transport);
    this.#get = calls[0];
    Object.assign(this, {
      transport,
      timers: timers(calls, transport),
      operations: operations(calls),
      groups: groups(calls),
      keys: keys(calls),
      stats: stats(calls),
    });
  }

  /** How the receivers are. */
  destinations(namespace?: string | string[]): Promise<m.Destinations> {
    return this.#get("/destinations", { namespace });
  }

  namespaces(): Promise<m.Namespaces> {
    return this.#get("/namespaces");
  }

  /** The nodes that share the work. */
  cluster(): Promise<m.Cluster> {
    return this.#get("/cluster");
  }

  /** What the API key of this client opens. */
  whoami(): Promise<m.Caller> {
    return this.#get("/whoami");
  }

  health(): Promise<m.Health> {
    return this.#get("/healthz");
  }

  /** Whether the service answers at all. */
  ping(): Promise<null> {
    return this.#get("/ping");
  }
}
