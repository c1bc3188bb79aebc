// The jobs that space.py wants: `JOBS` is a file with one line of JSON for each.

import { readFileSync } from 'node:fs';

const BATCH = 1_000;

export function* jobs() {
  const lines = readFileSync(process.env.JOBS, 'utf8').trimEnd().split('\n');
  for (let at = 0; at < lines.length; at += BATCH) {
    yield lines.slice(at, at + BATCH).map((line) => {
      const { payload, due } = JSON.parse(line);
      return { payload, due: new Date(due) };
    });
  }
}

export const untilStopped = () => new Promise((stop) => process.once('SIGTERM', stop));
