-- All tables that this and the next two migrations change, before any of them is touched and always in this order. Nothing below reads
-- a table: it is over in a moment. A program of the version before goes on afterwards.
LOCK TABLE definition, outcome, attempt IN ACCESS EXCLUSIVE MODE;

-- What a timer belongs to, inside its namespace. Its index, and that of expired timers, are built afterwards, beside all other work:
-- `outcome_expired` and `definition_group` in src/indexes.rs.
ALTER TABLE definition ADD COLUMN group_name text COLLATE "C";
