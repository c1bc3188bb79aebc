// The timeout of a saga: an order must be paid within 30 minutes, otherwise it is released.
//
//   TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… node saga-timeout/main.ts "$RECEIVER/release"

import { Invalid, TimerClient } from "timer-platform";

const [release] = process.argv.slice(2) as [string];
const client = new TimerClient();

/** One order. Its timeout is known by the number of the order, so that any process can end it. */
class Saga {
  readonly order: string;

  constructor(order: string) {
    this.order = order;
  }

  get timeout() {
    return { namespace: "orders", key: `${this.order}/timeout` };
  }

  /** May be repeated: the same key and content are the same timer. */
  async begin(): Promise<void> {
    await client.timers.create({
      ...this.timeout,
      url: release,
      in: "30m",
      group: this.order,
      payload: { order: this.order },
      retryPolicy: { maxRetries: 20, maxDuration: "1d" },
    });
  }

  /** Ends the timeout first: a cancel that is acknowledged always wins over the firing. */
  async pay(): Promise<void> {
    try {
      await client.timers.cancel(this.timeout);
      console.log(this.order, "is paid");
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      console.log(this.order, "comes too late: it is being released");
    }
  }
}

const [paid, late] = [new Saga("order-42"), new Saga("order-43")];
await Promise.all([paid.begin(), late.begin()]);
await paid.pay();
// The second order is never paid. Its time is over at once here, so that there is something to see.
await client.timers.fire(late.timeout);
