-- By minute and id, so that timers are inserted at the end of their minute, and claims and completions meet few pages.
CREATE TABLE IF NOT EXISTS due (
    minute INTEGER NOT NULL,
    id INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    claimed_at INTEGER,
    PRIMARY KEY (minute, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS payload (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL,
    body BLOB NOT NULL
);
