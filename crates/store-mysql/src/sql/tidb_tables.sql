-- What a database of TiDB has besides the tables of all others: see tidb.rs. Made together with the migration that makes
-- `generation`.

-- The stripes of a lock: a write that records events locks one of them, and a reader of events each in turn.
INSERT IGNORE INTO generation (n)
VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16);
