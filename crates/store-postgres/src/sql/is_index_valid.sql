-- Whether an index is there, and was built to its end.
-- $1 its name
SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid)
