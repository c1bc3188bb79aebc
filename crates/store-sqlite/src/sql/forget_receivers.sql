-- Removes what nodes knew of receivers before a time.
-- ?1 time
DELETE FROM receiver WHERE written_at < ?1
