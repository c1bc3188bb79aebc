/**
 * The TypeScript SDK of Timer Platform: register "call this at that time". Streams are in `timer-platform/events`, what receivers need is
 * in `timer-platform/webhook`, and what tests need in `timer-platform/testing`, so that a bundle has only what it uses.
 */

export { type Groups, type Keys, type Operations, type Stats, TimerClient, type Timers } from "./client.js";
export * from "./errors.js";
export { Json } from "./json.js";
export type * from "./models.js";
export type { Duration, Instant } from "./time.js";
export { type ClientOptions, currentTrace } from "./transport.js";
