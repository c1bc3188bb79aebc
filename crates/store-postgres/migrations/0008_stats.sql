-- Statistics for operators: what each node writes down of its work, and how the answers of receivers began. New tables, and a column
-- that a program of the version before does not name: it goes on beside this.

-- One row for each node, minute and namespace; '' stands for all namespaces together. The report is JSON.
CREATE TABLE digest (
    minute    bigint NOT NULL,
    node      uuid   NOT NULL,
    namespace text   NOT NULL COLLATE "C",
    report    text   NOT NULL COLLATE "C",
    PRIMARY KEY (namespace, minute, node)
);

CREATE INDEX digest_minute ON digest (minute);

-- What each node knows of the receivers that it calls. The report is JSON.
CREATE TABLE receiver (
    written_at  bigint NOT NULL,
    node        uuid   NOT NULL,
    namespace   text   NOT NULL COLLATE "C",
    destination text   NOT NULL COLLATE "C",
    report      text   NOT NULL COLLATE "C",
    PRIMARY KEY (node, namespace, destination)
);

CREATE INDEX receiver_written ON receiver (written_at);

-- What a receiver answered, as JSON; NULL where that is not kept.
ALTER TABLE attempt ADD COLUMN answer text COLLATE "C";
