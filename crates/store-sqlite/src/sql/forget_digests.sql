-- Removes what nodes did before a minute.
-- ?1 minute
DELETE FROM digest WHERE minute < ?1
