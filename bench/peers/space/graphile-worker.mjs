// What space.py asks of graphile-worker: `fill` adds jobs that are due later, `work` is a worker of their task.

import { makeWorkerUtils, run } from 'graphile-worker';
import { jobs, untilStopped } from './jobs.mjs';

const TASK = 'carts';

const connectionString = process.env.DATABASE_URL;
if (process.argv[2] === 'fill') {
  const utils = await makeWorkerUtils({ connectionString });
  await utils.migrate();
  for (const batch of jobs()) {
    await utils.addJobs(batch.map(({ payload, due }) => ({ identifier: TASK, payload, runAt: due })));
  }
  await utils.release();
} else {
  const called = () => {
    throw new Error('a job is due, and none should be yet');
  };
  const runner = await run({ connectionString, concurrency: 10, noHandleSignals: true, taskList: { [TASK]: called } });
  await untilStopped();
  await runner.stop();
}
