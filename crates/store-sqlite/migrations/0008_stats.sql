-- Statistics for operators: what each node writes down of its work, and how the answers of receivers began.

-- One row for each node, minute and namespace; '' stands for all namespaces together. The report is JSON.
CREATE TABLE digest (
    namespace TEXT    NOT NULL,
    minute    INTEGER NOT NULL,
    node      BLOB    NOT NULL,
    report    TEXT    NOT NULL,
    PRIMARY KEY (namespace, minute, node)
) STRICT, WITHOUT ROWID;

CREATE INDEX digest_minute ON digest (minute);

-- What each node knows of the receivers that it calls. The report is JSON.
CREATE TABLE receiver (
    node        BLOB    NOT NULL,
    namespace   TEXT    NOT NULL,
    destination TEXT    NOT NULL,
    written_at  INTEGER NOT NULL,
    report      TEXT    NOT NULL,
    PRIMARY KEY (node, namespace, destination)
) STRICT, WITHOUT ROWID;

CREATE INDEX receiver_written ON receiver (written_at);

-- What a receiver answered, as JSON; NULL where that is not kept.
ALTER TABLE attempt ADD COLUMN answer TEXT;
