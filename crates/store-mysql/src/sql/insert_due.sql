-- Makes timers due. The row of values is repeated for each timer.
INSERT INTO due (shard, at, id, destination, attempt)
VALUES (?, ?, ?, ?, 0)
