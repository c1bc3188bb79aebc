-- Makes a timer due.
-- ?1 minute, ?2 id, ?3 when its next attempt is due, ?4 destination, ?5 its due time, if that is
-- another, ?6 namespace
INSERT INTO due (shard, minute, id, at, attempt, destination, execute_at, namespace)
VALUES (0, ?1, ?2, ?3, 0, ?4, ?5, ?6)
