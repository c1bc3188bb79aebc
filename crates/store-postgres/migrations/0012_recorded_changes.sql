-- A change of many timers by one statement is written to the journal by that statement, and not by the trigger, whose function is called
-- for every row. A program of the version before goes on beside this: it does not name the column, so that the trigger writes for it.

LOCK TABLE definition IN ACCESS EXCLUSIVE MODE;

-- The revision whose change the statement that made it has written to the journal itself.
ALTER TABLE definition ADD COLUMN recorded bigint;

DROP TRIGGER changed ON definition;
CREATE TRIGGER changed AFTER UPDATE OF revision ON definition FOR EACH ROW
WHEN (NEW.revision <> OLD.revision AND NEW.recorded IS DISTINCT FROM NEW.revision)
EXECUTE FUNCTION timer_changed();
