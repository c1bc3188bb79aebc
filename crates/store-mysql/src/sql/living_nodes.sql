-- The nodes whose lease has not run out.
-- now
SELECT id
FROM node
WHERE lease_until > ?
