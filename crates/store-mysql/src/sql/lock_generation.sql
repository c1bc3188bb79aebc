-- Locks the latest generation. None is found when it was over before it could be locked.
SELECT n
FROM generation
WHERE n = (SELECT MAX(n) FROM generation)
LOCK IN SHARE MODE
