// A reminder in two days, which moves when the customer comes back and which is gone when the order is placed.
//
//   TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… node reminder/main.ts "$RECEIVER/remind"

import { type Timer, TimerClient } from "timer-platform";

const [url] = process.argv.slice(2) as [string];
const client = new TimerClient();

/** Each call postpones the same timer: it fires two days after the last. */
function remind(cart: number): Promise<Timer> {
  return client.timers.create({
    url,
    in: "2d",
    namespace: "shop",
    key: `cart-${cart}`,
    onConflict: "postpone",
    payload: { cart },
    retryPolicy: { maxRetries: 5, initialInterval: "1m" },
  });
}

for (const visit of [1, 2]) {
  const timer = await remind(4711);
  console.log(`visit ${visit}: reminder ${timer.id} at ${timer.executeAt}`);
}

// A second cart is ordered: its reminder is not needed any more.
await remind(4712);
await client.timers.cancel({ key: "cart-4712", namespace: "shop" });

for await (const timer of client.timers.list({ namespace: "shop" }, { sort: "created_at", order: "asc" })) {
  console.log(timer.key, timer.status);
}
