-- The minute under which a timer stands in `due`, if it is there.
-- ?1 id
SELECT due_minute
FROM definition
WHERE id = ?1
