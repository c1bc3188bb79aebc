/** For receivers: verifying calls, middleware of the usual frameworks, and answers of the `timer` protocol. */

export { expressCalls, fastifyCalls, fetchHandler, honoCalls, type ReceiverOptions } from "./handlers.js";
export * from "./webhook.js";
