-- Makes a timer due.
-- ?1 minute, ?2 id, ?3 when its next attempt is due, ?4 destination, ?5 its due time, if that is
-- another, ?6 namespace, ?7 when it was created
INSERT INTO due (shard, minute, id, at, attempt, destination, execute_at, namespace, created_at)
VALUES (0, ?1, ?2, ?3, 0, ?4, ?5, ?6, ?7)
