/** What is read while it arrives: events and exports. */

import type { TimerClient } from "./client.js";
import { fromAnswer, TimerError } from "./errors.js";
import { decode } from "./json.js";
import type { EventKind, Filter, TimerEvent } from "./models.js";
import { type Call, unreachable } from "./transport.js";

/** What happens to timers that match, from now on or `after` an event: the `eventId` of the last one resumes a stream. */
export async function* watch(
  client: TimerClient,
  filter: Filter = {},
  options: { types?: EventKind[]; after?: string; signal?: AbortSignal } = {},
): AsyncGenerator<TimerEvent, void, undefined> {
  const { signal, ...more } = options;
  const headers = { accept: "application/x-ndjson" };
  for await (const line of lines(client, { method: "GET", path: "/events", query: { ...filter, ...more }, headers }, signal)) {
    const event = decode<TimerEvent | { type: "position" }>(line);
    if (event.type !== "position") yield event;
  }
}

/** The lines of an export of everything that matches. */
export function exportTimers(
  client: TimerClient,
  filter: Filter = {},
  format: "ndjson" | "json" | "csv" = "ndjson",
): AsyncGenerator<string, void, undefined> {
  return lines(client, { method: "GET", path: `/timers.${format}`, query: filter });
}

/** The lines of an answer. It may take as long as it must. */
async function* lines(client: TimerClient, call: Call, signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
  const abort = new AbortController();
  const stop = () => abort.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const response = await client.transport.open(call, abort.signal);
    if (!response.ok) throw fromAnswer(response.status, response.headers, await response.text(), Date.now());
    if (response.body) yield* splitLines(response.body);
  } catch (error) {
    if (signal?.aborted) return;
    throw error instanceof TimerError ? error : unreachable(error);
  } finally {
    signal?.removeEventListener("abort", stop);
    abort.abort();
  }
}

async function* splitLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += decoder.decode(value, { stream: !done });
      const lines = rest.split("\n");
      rest = done ? "" : lines.pop()!;
      for (const line of lines) if (line !== "") yield line;
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
