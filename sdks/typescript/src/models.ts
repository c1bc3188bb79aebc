// What the service is told and what it answers. Names are those of the API in camelCase; answers may have more members than these.

import type { Json } from "./json.js";
import type { Duration, Instant } from "./time.js";

export type Status = "pending" | "executing" | "completed" | "failed" | "canceled" | "paused" | "expired";
export type OnConflict = "reject" | "replace" | "keep" | "postpone" | "earliest" | "latest";
export type Delivery = "at_least_once" | "at_most_once";
export type Protocol = "webhook" | "timer";
export type Rights = "read" | "write";
export type Action = "cancel" | "fire" | "retry" | "reschedule" | "pause" | "resume" | "expire" | "delete";
export type EventKind = "created" | "changed" | "attempt" | "finished";

/** A POST to `url`. A payload is anything that JSON can say, or exact text as `Json`. */
export interface HttpCallback {
  type?: "http";
  url: string;
  payload?: unknown;
  headers?: Record<string, string>;
  timeout?: Duration;
  protocol?: Protocol;
}

/** A message on the NATS subject `topic`. */
export interface NatsCallback {
  type: "nats";
  topic: string;
  payload?: unknown;
  headers?: Record<string, string>;
  key?: string;
  jetstream?: boolean;
}

export type Callback = HttpCallback | NatsCallback;

/** A callback as the service keeps it; `event` is that of a timer that came as a NATS command. */
export type CallbackConfig =
  | (Omit<HttpCallback, "type" | "payload"> & { type: "http"; payload?: Json | null })
  | (Omit<NatsCallback, "payload"> & { payload?: Json | null })
  | { type: "event" };

/** How failed calls are repeated; what is left out has the default of the service. */
export interface RetryPolicy {
  maxRetries?: number;
  initialInterval?: Duration;
  backoffMultiplier?: number;
  maxInterval?: Duration;
  maxDuration?: Duration;
}

/** A timer: its id, or the key that its creator chose. */
export type Target = string | { key: string; namespace?: string };

interface Options {
  group?: string | null;
  metadata?: unknown;
  retryPolicy?: RetryPolicy | null;
  delivery?: Delivery;
  correlationId?: string | null;
  expiresAt?: Instant | null;
  expiresAfter?: Duration | null;
  postponeMax?: Duration | null;
  onSuccess?: Callback | null;
  onFailure?: Callback | null;
}

/** A timer to be created: due `in` some time or `at` an instant, calling `url` or a `callback`. */
export interface NewTimer extends Partial<Omit<HttpCallback, "type">>, Options {
  in?: Duration;
  at?: Instant;
  callback?: Callback;
  namespace?: string;
  key?: string;
  id?: string;
  onConflict?: OnConflict;
}

/** What an update changes: what is left out stays, `null` clears. */
export interface Changes extends Options {
  in?: Duration;
  at?: Instant;
  callback?: Callback;
}

/** Which timers are meant: those for which everything holds that is said here. */
export interface Filter {
  status?: Status | Status[];
  namespace?: string | string[];
  key?: string;
  keyPrefix?: string;
  group?: string;
  dueFrom?: Instant;
  dueTo?: Instant;
  createdFrom?: Instant;
  createdTo?: Instant;
  correlationId?: string;
  destination?: string;
  /** Dotted paths and the texts of scalars: `{"customer.id": "42"}`. */
  metadata?: Record<string, string>;
  error?: string;
}

export interface Sorting {
  /** Timers of a page. */
  limit?: number;
  sort?: "created_at" | "execute_at";
  order?: "asc" | "desc";
}

/** Where a bulk reschedule puts timers: exactly one of these. */
export interface RescheduleTo {
  executeAt?: Instant;
  shift?: string;
  spread?: Duration;
}

/** A timer as lists show it. */
export interface Timer {
  id: string;
  namespace: string;
  key: string | null;
  group: string | null;
  status: Status;
  callbackType: "http" | "nats" | "event";
  executeAt: string;
  timeLeft: number;
  executedAt: string | null;
  createdAt: string;
  updatedAt: string;
  revision: number;
}

/** A timer with everything that it was created with and that happened to it. */
export interface TimerDetail extends Timer {
  callbackConfig: CallbackConfig;
  metadata: Json | null;
  correlationId: string | null;
  retryPolicy: RetryPolicy | null;
  delivery: Delivery;
  expiresAt: string | null;
  expiresAfter: string | null;
  postponeMax: string | null;
  onSuccess: CallbackConfig | null;
  onFailure: CallbackConfig | null;
  attempt: number;
  lastError: string | null;
  pausedAt: string | null;
  pauseNote: string | null;
}

export interface Page {
  timers: Timer[];
  total: number;
  totalIsEstimate: boolean;
  limit: number;
  offset: number;
  nextCursor: string | null;
  scanned: number;
  complete: boolean;
}

export interface Count {
  total: number;
  totalIsEstimate: boolean;
}

export interface Attempt {
  number: number;
  startedAt: string;
  tookMs: number;
  outcome: string;
  status: number | null;
  detail: string | null;
  /** The name of the node that made it. */
  node: string | null;
  answer: { headers: Record<string, string>; body: string | null; bodyBase64: string | null } | null;
}

/** What became of one timer of a batch: the status and message that it would have had alone. */
export interface BatchResult {
  status: number;
  message: string;
  field?: string;
  timer?: Timer;
}

export type CountByStatus = Record<Status, number>;

export interface BulkChanged {
  changed: number;
  skipped: number;
}

/** What a dry run met. */
export interface BulkPreview {
  matched: number;
  matchedIsEstimate: boolean;
  byStatus: CountByStatus;
  examples: Timer[];
}

/** A bulk change of many timers, which goes on in the background. */
export interface Operation {
  id: string;
  action: Action;
  filter: Json;
  state: "running" | "done" | "stopped" | "failed";
  matched: number;
  changed: number;
  skipped: number;
  errors: number;
  error: string | null;
  startedAt: string;
  finishedAt: string | null;
  by: string;
}

export interface BulkStarted {
  operation: Operation;
}

export interface Canceled {
  matched: number;
  canceled: number;
}

export interface Group {
  namespace: string;
  group: string;
  total: number;
  totalIsEstimate: boolean;
  byStatus: CountByStatus;
}

/** Something that happened to a timer. A resumed stream may repeat some: `type`, `at` and the timer's id identify it. */
export interface TimerEvent {
  type: EventKind;
  eventId: string;
  at: string;
  timer: Timer;
  attempt?: Attempt | null;
}

export interface ApiKey {
  id: string;
  name: string;
  namespaces: string[] | null;
  rights: Rights;
  createdAt: string;
  /** To the minute; null if no use of it is recorded. */
  lastUsedAt: string | null;
  revokedAt: string | null;
}

/** A new API key with its secret, which is shown this once. */
export interface IssuedKey extends ApiKey {
  key: string;
}

export interface Window {
  from?: Instant;
  to?: Instant;
  step?: Duration;
  namespace?: string | string[];
}

interface Buckets<Bucket> {
  from: string;
  to: string;
  stepSeconds: number;
  buckets: Bucket[];
}

export interface DueStats extends Buckets<{ at: string; pending: number }> {
  pendingIsEstimate: boolean;
  complete: boolean;
}

export interface FiredBucket {
  at: string;
  created: number;
  fired: number;
  completed: number;
  failed: number;
  retried: number;
  latenessP50Ms: number | null;
  latenessP99Ms: number | null;
  latenessMaxMs: number | null;
}

export type FiredStats = Buckets<FiredBucket>;

export interface Destination {
  destination: string;
  health: "good" | "slow" | "failing" | "silent";
  inFlight: number;
  ok1m: number;
  failed1m: number;
  ok10m: number;
  failed10m: number;
  p50Ms: number | null;
  p99Ms: number | null;
  failuresInARow: number;
  lastError: string | null;
  pendingRetries: number;
}

export interface Destinations {
  destinations: Destination[];
  complete: boolean;
}

export interface Namespace {
  name: string;
  pending: number;
  failed: number;
  oldestOverdue: string | null;
  hasRetryPolicy: boolean;
  retryPolicy: RetryPolicy | null;
  hasSigningSecret: boolean;
  hasSubjects: boolean;
}

export interface Namespaces {
  namespaces: Namespace[];
  pendingIsEstimate: boolean;
  failedIsEstimate: boolean;
  complete: boolean;
}

export interface Node {
  id: string;
  name: string;
  version: string;
  startedAt: string;
  alive: boolean;
  takesShards: boolean;
  leaseSecondsLeft: number;
  clockSkewSeconds: number;
  shards: number;
  inFlight: number;
  firesPerSecond: number;
}

export interface Cluster {
  now: string;
  nodes: Node[];
  shards: { shard: number; epoch: number; owner: string | null }[];
  oldestOverdueSeconds: number;
  /** The latest acquisitions of shards, the latest first. */
  moves: { at: string; shard: number; epoch: number; from: string | null; to: string }[];
}

/** What the API key of the client opens. */
export interface Caller {
  administrator: boolean;
  id: string | null;
  name: string;
  rights: Rights;
  namespaces: string[] | null;
}

export interface Health {
  status: "up" | "degraded";
  database: "connected" | "disconnected";
  timestamp: string;
}
