// A receiver: it verifies signatures, drops repetitions, and asks for a later attempt while it is closed.
//
//   SIGNING_SECRET=whsec_… node receiver/main.ts 9000

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Answer, again, type Call, done, expressCalls, failed, retryAfter } from "timer-platform/webhook";

// One process remembers in memory. Several share a table, and record the call in the transaction that does the work.
const seen = new Set<string>();
const secrets = (process.env.SIGNING_SECRET ?? "").split(",");
const verified = expressCalls({ secrets, isNew: ({ id }) => !seen.has(id) && !!seen.add(id) });

const handlers: Record<string, (call: Call) => Answer> = {
  /** For timers of the webhook protocol: any 2xx completes them. */
  "/remind": (call) => {
    if (call.json<{ closed?: boolean }>().closed) {
      seen.delete(call.id);
      return retryAfter(60_000);
    }
    console.log(`${call.timerId} attempt ${call.attempt}, ${call.latenessMs} ms late: ${call.text()}`);
    return { status: 204, headers: {}, body: "" };
  },
  /** For timers of the timer protocol: the body has the payload, and the answer says when to call again. */
  "/poll": (call) => {
    const { payload } = call.json<{ payload: { name?: string; done?: boolean } }>();
    if (!payload.name) return failed();
    if (!payload.done) return again(new Date(Date.now() + 3_600_000));
    console.log(`${payload.name} is done`);
    return done();
  },
};

const server = createServer((request: IncomingMessage & { timerCall?: Call }, response: ServerResponse) => {
  verified(request, response, (error) => {
    const handler = handlers[request.url ?? ""];
    const answer = error ? failed() : handler ? handler(request.timerCall as Call) : { status: 404, headers: {}, body: "" };
    response.writeHead(answer.status, answer.headers).end(answer.body);
  });
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
