-- Forgets a node.
-- node
DELETE FROM node
WHERE id = ?
