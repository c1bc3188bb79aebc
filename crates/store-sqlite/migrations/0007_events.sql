-- What happened to timers and is in no row of theirs: changes, recorded attempts, and creations and ends that were written down
-- late. `at` is the moment of the write. Nothing is written here for a timer that is created and settled in time.
CREATE TABLE journal (
    at     INTEGER NOT NULL,
    kind   INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    moment INTEGER,
    id     BLOB    NOT NULL,
    status TEXT
) STRICT;

CREATE INDEX journal_at ON journal (at);
