// Creates timers the way the Node clients of other systems do: a fixed number of callers, each of which waits for its
// answer before it sends the next request, over a pool of kept connections. No dependencies; needs Node 18 or newer.
//
//   API_KEY=… node bench/peers/client.mjs http://127.0.0.1:8080 [--count 20000] [--connections 64] [--batch 1]
//
// Prints one line of JSON: creates per second, p50 and p99 of the answers in milliseconds, CPU seconds of this client.
// The body of a create is the one that `timer bench` sends. Times that are far away keep the calls out of the measurement;
// what is created is canceled at the end.

import http from 'node:http';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '20000' },
    connections: { type: 'string', default: '64' },
    batch: { type: 'string', default: '1' },
  },
});
const number = (name) => {
  const parsed = Number(values[name]);
  if (!Number.isInteger(parsed) || parsed < 1) throw new Error(`--${name} must be a whole number above 0`);
  return parsed;
};
const [count, connections, batch] = ['count', 'connections', 'batch'].map(number);
const url = new URL(positionals[0] ?? 'http://127.0.0.1:8080');
const apiKey = process.env.API_KEY ?? '';
const TIMERS_PER_NAMESPACE = 10_000;
const round = Date.now();

const filling = {
  kind: 'cart.abandoned',
  customer: { id: 'c-48151623', locale: 'en-GB', segment: 'returning', marketing: false },
  items: [
    { sku: 'TP-1001-BLK', name: 'Espresso cup, stoneware, black', quantity: 4, price: '12.50' },
    { sku: 'TP-2042-OAK', name: 'Serving board, oiled oak, large', quantity: 1, price: '38.90' },
  ],
  total: { amount: '88.90', currency: 'EUR' },
  channel: 'web',
  campaign: null,
  attempt: 1,
  links: { cart: 'https://shop.example/cart/48151623', support: 'https://shop.example/help' },
};

const timer = (n) => ({
  execute_at: new Date(round + 600_000 + n).toISOString(),
  namespace: `node-${round}-${Math.floor(n / TIMERS_PER_NAMESPACE)}`,
  callback: { type: 'http', url: `http://127.0.0.1:9/${n}`, payload: { number: n, ...filling } },
});

const agent = new http.Agent({ keepAlive: true, maxSockets: connections, scheduling: 'fifo' });

function post(path, body) {
  const text = JSON.stringify(body);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), 'x-api-key': apiKey };
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', path, agent, headers }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString() }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(text);
  });
}

let next = 0;
let created = 0;
let firstRefusal;
const answers = [];

async function caller() {
  while (next < count) {
    const first = next;
    next += batch;
    const size = Math.min(batch, count - first);
    const began = performance.now();
    const timers = Array.from({ length: size }, (_, i) => timer(first + i));
    const answer = batch === 1 ? await post('/timers', timers[0]) : await post('/timers/batch', { timers });
    answers.push(performance.now() - began);
    // As a client would, the answer is read.
    const read = JSON.parse(answer.text);
    const done = batch === 1 ? Number(answer.status === 201) : (read.data?.results ?? []).filter((one) => one.status === 201).length;
    created += done;
    if (done < size) firstRefusal ??= `${answer.status} ${answer.text.slice(0, 200)}`;
  }
}

const cpuBefore = process.cpuUsage();
const began = performance.now();
await Promise.all(Array.from({ length: connections }, caller));
const seconds = (performance.now() - began) / 1000;
const { user, system } = process.cpuUsage(cpuBefore);

for (let n = 0; n * TIMERS_PER_NAMESPACE < count; n += 1) {
  await post('/timers/cancel', { namespace: `node-${round}-${n}`, expected_max: TIMERS_PER_NAMESPACE });
}
agent.destroy();

answers.sort((a, b) => a - b);
const percentile = (share) => Number(answers[Math.max(0, Math.ceil(answers.length * share) - 1)].toFixed(3));
console.log(JSON.stringify({
  client: `node ${process.version}`,
  created,
  refused: count - created,
  first_refusal: firstRefusal,
  connections,
  batch,
  seconds: Number(seconds.toFixed(3)),
  creates_per_second: Math.round(created / seconds),
  p50_ms: percentile(0.5),
  p99_ms: percentile(0.99),
  client_cpu_seconds: Number(((user + system) / 1e6).toFixed(2)),
}));
process.exitCode = created === count ? 0 : 1;
