// What space.py asks of pg-boss: `fill` inserts jobs that are due later, `work` is a worker of their queue.

import PgBoss from 'pg-boss';
import { jobs, untilStopped } from './jobs.mjs';

const QUEUE = 'carts';

const boss = new PgBoss(process.env.DATABASE_URL);
boss.on('error', console.error);
await boss.start();
await boss.createQueue(QUEUE);
if (process.argv[2] === 'fill') {
  for (const batch of jobs()) {
    await boss.insert(batch.map(({ payload, due }) => ({ name: QUEUE, data: payload, startAfter: due.toISOString() })));
  }
} else {
  await boss.work(QUEUE, async () => {
    throw new Error('a job is due, and none should be yet');
  });
  await untilStopped();
}
await boss.stop();
