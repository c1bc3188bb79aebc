-- Writes a small row, for a role that may not create temporary tables. Both in one transaction, so
-- that no session ever sees the row. Two sessions do not meet: each process of the server has its
-- number.
INSERT INTO attempt (id, seq, started_at, took, number, outcome)
VALUES ('00000000-0000-0000-0000-000000000000', pg_backend_pid(), 0, 0, 0, 'probe');
DELETE FROM attempt
WHERE id = '00000000-0000-0000-0000-000000000000' AND seq = pg_backend_pid()
