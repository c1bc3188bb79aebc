-- Counts timers that were added or, if negative, removed.
-- ?1 namespace, ?2 status, ?3 how many
INSERT INTO tally (namespace, status, timers)
VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET timers = timers + excluded.timers
