-- What the second version added to the timers of the first: an attempt of the one that waits for its retry, and a key.
INSERT INTO timer_migration (version) VALUES (2);
INSERT INTO attempt (seq, started_at, took, number, status, id, outcome, detail)
VALUES (1, 1749988800000000, 12000, 1, 503, '00000000-0000-7000-8000-000000000002', 'status_5xx', NULL);
INSERT INTO access_key (id, hash, created_at, name, rights)
VALUES ('00000000-0000-7000-8000-000000000009', decode(repeat('07', 32), 'hex'), 1749988800000000, 'ops', 'write');
