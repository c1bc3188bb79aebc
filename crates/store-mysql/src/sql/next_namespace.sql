-- The next namespace that has timers, by name.
-- the one before
SELECT MIN(namespace)
FROM definition
WHERE namespace > ?
