-- What the options of a timer say.
-- ?1 id
SELECT options FROM definition WHERE id = ?1
