-- What happened to timers and is in no row of theirs: changes, recorded attempts, and creations and ends that were written down
-- late. Nothing is written here for a timer that is created and settled in time. Triggers write it, so that no statement can forget
-- to, nor a program of the version before, which goes on beside this.

CREATE TABLE journal (
    -- The moment of the write by this server's clock, after the transaction has got its number.
    at     bigint   NOT NULL,
    n      bigint   GENERATED ALWAYS AS IDENTITY,
    seq    bigint   NOT NULL,
    moment bigint,
    kind   smallint NOT NULL,
    id     uuid     NOT NULL,
    status text     COLLATE "C",
    PRIMARY KEY (at, n)
) WITH (
    -- Every entry is removed after a day: clean up often and in small portions, as in `due`.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05,
    vacuum_truncate = false
);

-- The moment, in microseconds since 1970. Not the beginning of the transaction, as now() is.
CREATE FUNCTION timer_now() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

CREATE FUNCTION timer_created_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal (at, kind, id, seq, moment) VALUES (timer_now(), 1, NEW.id, 0, NEW.created_at);
    RETURN NULL;
END $$;

-- A revival gives the timer another created_at: the creation of its former life goes to the journal.
CREATE FUNCTION timer_recreated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal (at, kind, id, seq, moment) VALUES (timer_now(), 6, NEW.id, 0, OLD.created_at);
    RETURN NULL;
END $$;

CREATE FUNCTION timer_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal (at, kind, id, seq) VALUES (timer_now(), 2, NEW.id, NEW.revision);
    RETURN NULL;
END $$;

CREATE FUNCTION timer_attempted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A probe of the disk has the number zero, and is no attempt.
    INSERT INTO journal (at, kind, id, seq) SELECT timer_now(), 3, r.id, r.seq FROM recorded r WHERE r.number > 0;
    RETURN NULL;
END $$;

CREATE FUNCTION timer_finished_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal (at, kind, id, seq, moment, status) VALUES (timer_now(), 4, NEW.id, 0, NEW.finished_at, NEW.status);
    RETURN NULL;
END $$;

-- Only for timers that go on: one that is removed has no events any more. The journal is kept for a day, and what ended before that
-- would be forgotten at once.
CREATE FUNCTION timer_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal (at, kind, id, seq, moment, status)
    SELECT timer_now(), 5, g.id, 0, g.finished_at, g.status
    FROM gone g
    WHERE g.finished_at > timer_now() - 86400000000 AND EXISTS (SELECT FROM definition f WHERE f.id = ANY (ARRAY[g.id]));
    RETURN NULL;
END $$;

-- The functions write with the rights of the role that migrates, and find the tables that stand beside them, whatever search_path the
-- session has that changes a timer: a role that may only use the tables, or an operator with another search_path, records events as
-- well. Temporary tables come last, so that none is taken for the journal.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'timer_created_late', 'timer_recreated', 'timer_changed', 'timer_attempted', 'timer_finished_late', 'timer_ended'
    ]
    LOOP
        EXECUTE format('ALTER FUNCTION %I() SECURITY DEFINER SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END $$;

-- The conditions are evaluated without a call of the function: what is written in time pays for a comparison and nothing else.
CREATE TRIGGER created_late AFTER INSERT ON definition FOR EACH ROW
WHEN (
    to_timestamp(NEW.created_at / 1000000::double precision)
    NOT BETWEEN clock_timestamp() - interval '2 s' AND clock_timestamp() + interval '2 s'
)
EXECUTE FUNCTION timer_created_late();

CREATE TRIGGER recreated_late AFTER UPDATE OF created_at ON definition FOR EACH ROW
WHEN (
    NEW.created_at <> OLD.created_at
    AND to_timestamp(NEW.created_at / 1000000::double precision)
    NOT BETWEEN clock_timestamp() - interval '2 s' AND clock_timestamp() + interval '2 s'
)
EXECUTE FUNCTION timer_created_late();

-- The journal is kept for a day: no reader asks for a creation before that.
CREATE TRIGGER recreated AFTER UPDATE OF created_at ON definition FOR EACH ROW
WHEN (
    NEW.created_at <> OLD.created_at
    AND to_timestamp(OLD.created_at / 1000000::double precision) > clock_timestamp() - interval '1 day'
)
EXECUTE FUNCTION timer_recreated();

CREATE TRIGGER changed AFTER UPDATE OF revision ON definition FOR EACH ROW
WHEN (NEW.revision <> OLD.revision)
EXECUTE FUNCTION timer_changed();

CREATE TRIGGER attempted AFTER INSERT ON attempt
REFERENCING NEW TABLE AS recorded FOR EACH STATEMENT
EXECUTE FUNCTION timer_attempted();

CREATE TRIGGER finished_late AFTER INSERT ON outcome FOR EACH ROW
WHEN (
    to_timestamp(NEW.finished_at / 1000000::double precision)
    NOT BETWEEN clock_timestamp() - interval '2 s' AND clock_timestamp() + interval '2 s'
)
EXECUTE FUNCTION timer_finished_late();

CREATE TRIGGER ended AFTER DELETE ON outcome
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
EXECUTE FUNCTION timer_ended();
