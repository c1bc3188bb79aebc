// Verification in front of the handlers of the usual frameworks. A request that is not verified is answered with 401; one whose id
// `isNew` does not accept is a repetition, and answered with 200. The raw body is verified, so no parser may have taken it before.
//
//     export default { fetch: fetchHandler({ secrets }, async (call) => done()) }              Deno, Bun, workers, Next.js
//     app.post("/hooks/cart", honoCalls({ secrets }), (c) => c.json(c.get("timerCall").id))    Hono
//     app.post("/hooks/cart", expressCalls({ secrets }), (req, res) => res.send(req.timerCall.id))   Express
//     app.register(fastifyCalls, { secrets, routes: (app) => app.post("/hooks/cart", async (req) => …) })   Fastify

import { type Answer, type Call, InvalidCall, type VerifyOptions, verify } from "./webhook.js";

const BODY_BYTES_MAX = 1024 * 1024;

export interface ReceiverOptions extends Pick<VerifyOptions, "toleranceMs"> {
  secrets: string | string[];
  /** Says whether a call is the first with its id; a real receiver asks its database. */
  isNew?: (call: Call) => boolean | Promise<boolean>;
}

type Verdict = { call: Call } | { status: 200 | 401 };

async function judge(
  headers: Parameters<typeof verify>[0],
  body: Uint8Array,
  { secrets, toleranceMs, isNew }: ReceiverOptions,
): Promise<Verdict> {
  try {
    const call = await verify(headers, body, secrets, toleranceMs === undefined ? {} : { toleranceMs });
    return !isNew || (await isNew(call)) ? { call } : { status: 200 };
  } catch (error) {
    if (error instanceof InvalidCall) return { status: 401 };
    throw error;
  }
}

type Handled = Answer | Response | undefined;

/** A handler of the Fetch API; it answers with 204 where `handle` returns nothing. */
export function fetchHandler(
  options: ReceiverOptions,
  handle: (call: Call, request: Request) => Handled | Promise<Handled> | Promise<void>,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const verdict = await judge(request.headers, new Uint8Array(await request.clone().arrayBuffer()), options);
    if ("status" in verdict) return new Response(null, { status: verdict.status });
    const answer = (await handle(verdict.call, request)) as Handled;
    if (answer instanceof Response) return answer;
    return answer ? new Response(answer.body || null, answer) : new Response(null, { status: 204 });
  };
}

interface HonoContext {
  req: { raw: Request; arrayBuffer(): Promise<ArrayBuffer> };
  set(name: "timerCall", call: Call): void;
}

/** Middleware of Hono; the handler finds the call as `c.get("timerCall")`. */
// biome-ignore lint/suspicious/noExplicitAny: the context of Hono depends on types of the application
export function honoCalls(options: ReceiverOptions): (context: any, next: () => Promise<void>) => Promise<Response | undefined> {
  return async (context: HonoContext, next) => {
    const verdict = await judge(context.req.raw.headers, new Uint8Array(await context.req.arrayBuffer()), options);
    if ("status" in verdict) return new Response(null, { status: verdict.status });
    context.set("timerCall", verdict.call);
    await next();
    return undefined;
  };
}

type Incoming = AsyncIterable<Uint8Array> & {
  headers: Record<string, string | string[] | undefined>;
  body?: unknown;
  timerCall?: Call;
};

interface Outgoing {
  statusCode: number;
  end(): unknown;
}

/** Middleware of Express and of plain `node:http`; the handler finds the call as `req.timerCall`. It stands before `express.json()`. */
// biome-ignore lint/suspicious/noExplicitAny: requests of Express and of node:http are both taken
export function expressCalls(options: ReceiverOptions): (request: any, response: any, next: (error?: unknown) => void) => void {
  return (request: Incoming, response: Outgoing, next) => {
    const work = async () => {
      const body = request.body instanceof Uint8Array ? request.body : await collect(request);
      const verdict = body ? await judge(request.headers, body, options) : { status: 413 };
      if ("call" in verdict) {
        request.timerCall = verdict.call;
        return next();
      }
      response.statusCode = verdict.status;
      response.end();
    };
    work().catch(next);
  };
}

/** The raw bytes; nothing if there are more than a call may have. */
async function collect(request: AsyncIterable<Uint8Array>): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of request) {
    length += part.length;
    if (length > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

interface FastifyReply {
  code(status: number): { send(): unknown };
}

interface FastifyLike {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(type: string, options: { parseAs: "buffer" }, parser: (...args: never[]) => void): unknown;
  decorateRequest(name: string, value: null): unknown;
  addHook(name: "preHandler", hook: (request: Incoming, reply: FastifyReply) => Promise<unknown>): unknown;
}

/** Plugin of Fastify with routes of its own; their handlers find the call as `request.timerCall`, and the raw body as `request.body`. */
export async function fastifyCalls(
  // biome-ignore lint/suspicious/noExplicitAny: an instance of Fastify depends on types of the application
  app: any,
  // biome-ignore lint/suspicious/noExplicitAny: the same
  { routes, ...options }: ReceiverOptions & { routes: (app: any) => unknown },
): Promise<void> {
  const instance = app as FastifyLike;
  instance.removeAllContentTypeParsers();
  const raw = (_: unknown, body: unknown, parsed: (error: null, body: unknown) => void) => parsed(null, body);
  instance.addContentTypeParser("*", { parseAs: "buffer" }, raw);
  instance.decorateRequest("timerCall", null);
  instance.addHook("preHandler", async (request, reply) => {
    const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
    const verdict = await judge(request.headers, body, options);
    if ("status" in verdict) return reply.code(verdict.status).send();
    request.timerCall = verdict.call;
    return undefined;
  });
  await routes(app);
}
