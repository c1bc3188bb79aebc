-- What the first version of the tables may hold: timers in every status, as the program of that time wrote them.
CREATE TABLE timer_migration (
    version    integer     PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO timer_migration (version) VALUES (1);

UPDATE shard SET epoch = 1, owner = '00000000-0000-0000-0000-000000000007', lease_until = 1749988860000000;

INSERT INTO definition (id, asked, execute_at, due_minute, created_at, updated_at, revision, namespace, key, callback_type,
    delivery, fingerprint, metadata, callback_config)
SELECT ('00000000-0000-7000-8000-00000000000' || n)::uuid, 1749988800000000, 1749988800000000, 29166480,
    1749988800000000, 1749988800000000, 1, 'default', NULL, 'http', 'at_least_once', '\x239879e7f95b6b1e11653591200a972f', NULL,
    '{"type":"http","url":"http://a.example/","timeout":"30s","protocol":"webhook"}'
FROM generate_series(1, 6) AS n;
INSERT INTO definition (id, asked, execute_at, due_minute, created_at, updated_at, revision, namespace, key, callback_type,
    delivery, fingerprint, metadata, callback_config)
VALUES ('4388edbf-50be-5845-b9f2-08704dbc4491', 1749988800000000, 1749988800000000, 29166480, 1749988800000000,
    1749988800000000, 1, 'tenant', 'order-7', 'http', 'at_least_once', '\x01c3d401dd5aea37c211f443bd79db23', '{"a":1}',
    '{"type":"http","url":"http://a.example/hook","payload":{"n": 1.0},"timeout":"30s","protocol":"webhook"}');

-- 1 and the one with a key are pending, 2 waits for its second attempt, 3 is executing.
UPDATE definition SET due_minute = 29166481 WHERE id = '00000000-0000-7000-8000-000000000002';
INSERT INTO due (shard, attempt, minute, id, at, destination, claim, epoch, lease_until, last_error) VALUES
    (1, 0, 29166480, '00000000-0000-7000-8000-000000000001', 1749988800000000, -5843461364628200570, NULL, NULL, NULL, NULL),
    (2, 1, 29166481, '00000000-0000-7000-8000-000000000002', 1749988860000000, -5843461364628200570, NULL, NULL, NULL, 'HTTP 503'),
    (3, 1, 29166480, '00000000-0000-7000-8000-000000000003', 1749988800000000, -5843461364628200570, 77, 1, 1749988830000000, NULL),
    (17, 0, 29166480, '4388edbf-50be-5845-b9f2-08704dbc4491', 1749988800000000, -5843461364628200570, NULL, NULL, NULL, NULL);
INSERT INTO outcome (id, executed_at, finished_at, attempt, status, last_error) VALUES
    ('00000000-0000-7000-8000-000000000004', 1749988800000000, 1749988800000000, 1, 'completed', NULL),
    ('00000000-0000-7000-8000-000000000005', 1749988800000000, 1749988800000000, 3, 'failed', 'HTTP 500'),
    ('00000000-0000-7000-8000-000000000006', NULL, 1749988800000000, 0, 'canceled', NULL);
