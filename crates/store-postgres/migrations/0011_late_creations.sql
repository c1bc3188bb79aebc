-- Whether creations are written down late is asked by the statement that writes them, once for all of its timers. A trigger with that
-- condition cost a tenth of an insert: PostgreSQL reads the condition from its text for every statement. A program of the version before
-- goes on beside this: it does not name the column, so that the trigger asks for it.

LOCK TABLE definition IN ACCESS EXCLUSIVE MODE;

-- Asked for as a timer is written, and of no meaning afterwards. NULL where that happens in time.
ALTER TABLE definition ADD COLUMN is_late boolean;
ALTER TABLE definition ALTER COLUMN is_late SET DEFAULT true;

CREATE OR REPLACE FUNCTION timer_created_late() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    written_at bigint := timer_now();
BEGIN
    IF abs(NEW.created_at - written_at) > 2000000 THEN
        INSERT INTO journal (at, kind, id, seq, moment) VALUES (written_at, 1, NEW.id, 0, NEW.created_at);
    END IF;
    RETURN NULL;
END $$;

-- As in 0007: with the rights of the role that migrates, on the tables that stand beside it.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION timer_created_late() SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
END $$;

DROP TRIGGER created_late ON definition;
CREATE TRIGGER created_late AFTER INSERT ON definition FOR EACH ROW
WHEN (NEW.is_late)
EXECUTE FUNCTION timer_created_late();
