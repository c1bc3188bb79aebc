-- Locks earlier generations that no transaction holds any more: those are over.
-- the number of the latest
SELECT n
FROM generation
WHERE n < ?
FOR UPDATE SKIP LOCKED
