-- Records how a timer ended. There cannot be an outcome already. If a damaged database has one, it
-- must not hold up the whole batch.
-- ?1 minute of its due time, ?2 id, ?3 due time, ?4 status, ?5 attempt, ?6 namespace, ?7 error, ?8
-- executed at, ?9 finished at, ?10 created at
INSERT OR REPLACE INTO outcome (minute, id, execute_at, status, attempt, namespace, last_error, executed_at, finished_at, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
