/** The TypeScript SDK of Timer Platform: register "call this at that time", and receive the calls. */

export { Groups, Keys, Operations, Stats, TimerClient, Timers } from "./client.js";
export * from "./errors.js";
export { expressCalls, fastifyCalls, fetchHandler, honoCalls, type ReceiverOptions } from "./handlers.js";
export { Json } from "./json.js";
export type * from "./models.js";
export type { Duration, Instant } from "./time.js";
export { type ClientOptions, currentTrace } from "./transport.js";
export * from "./webhook.js";
