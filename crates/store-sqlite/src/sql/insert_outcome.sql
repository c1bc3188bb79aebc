-- Records how a timer ended. There cannot be an outcome already. If a damaged database has one, it
-- must not hold up the whole batch.
-- ?1 minute of its due time, ?2 id, ?3 due time, ?4 status, ?5 attempt, ?6 namespace, ?7 error, ?8
-- executed at, ?9 finished at
INSERT INTO outcome (minute, id, execute_at, status, attempt, namespace, last_error, executed_at, finished_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (minute, id) DO UPDATE SET
    execute_at = excluded.execute_at, status = excluded.status, attempt = excluded.attempt,
    namespace = excluded.namespace, last_error = excluded.last_error, executed_at = excluded.executed_at,
    finished_at = excluded.finished_at
