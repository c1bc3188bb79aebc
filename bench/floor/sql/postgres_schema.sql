-- Half of each page is free, so that a claim stays on its page and touches no index. Timers are found by their ids: when they are
-- due is read once, at the start.
CREATE TABLE IF NOT EXISTS due (
    id bigint PRIMARY KEY,
    due_at bigint NOT NULL,
    claimed_at bigint
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS payload (
    id bigint PRIMARY KEY,
    url text NOT NULL,
    body bytea NOT NULL
);
