-- What a database of TiDB has besides the tables of all others: see tidb.rs. Made together with the migration that makes
-- `generation`.

-- Numbers from 0, one for each row that a statement is given as a JSON text.
CREATE TABLE IF NOT EXISTS numbers (
    n BIGINT NOT NULL PRIMARY KEY
);

INSERT IGNORE INTO numbers (n) VALUES (0), (1), (2), (3), (4), (5), (6), (7);
INSERT IGNORE INTO numbers (n) SELECT n + 8 FROM numbers WHERE n < 8;
INSERT IGNORE INTO numbers (n) SELECT n + 16 FROM numbers WHERE n < 16;
INSERT IGNORE INTO numbers (n) SELECT n + 32 FROM numbers WHERE n < 32;
INSERT IGNORE INTO numbers (n) SELECT n + 64 FROM numbers WHERE n < 64;
INSERT IGNORE INTO numbers (n) SELECT n + 128 FROM numbers WHERE n < 128;
INSERT IGNORE INTO numbers (n) SELECT n + 256 FROM numbers WHERE n < 256;
INSERT IGNORE INTO numbers (n) SELECT n + 512 FROM numbers WHERE n < 512;
INSERT IGNORE INTO numbers (n) SELECT n + 1024 FROM numbers WHERE n < 1024;
INSERT IGNORE INTO numbers (n) SELECT n + 2048 FROM numbers WHERE n < 2048;
INSERT IGNORE INTO numbers (n) SELECT n + 4096 FROM numbers WHERE n < 4096;
INSERT IGNORE INTO numbers (n) SELECT n + 8192 FROM numbers WHERE n < 8192;

-- The lanes: a write that records events locks one of them, and a reader of events each in turn.
INSERT IGNORE INTO generation (n) SELECT n + 1 FROM numbers WHERE n < 16;
