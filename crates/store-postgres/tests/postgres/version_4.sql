-- A database of the program of version 4 (commit c2772bc), filled through its API on 2025-06-15 at 12:00 of a clock that was set
-- back, and killed in the middle of a call. `store_conformance::version_4` says what it was asked for. This is what pg_dump wrote,
-- without its comments and settings.
CREATE TABLE public.access_key (
    id uuid NOT NULL,
    hash bytea NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint,
    name text NOT NULL COLLATE pg_catalog."C",
    rights text NOT NULL COLLATE pg_catalog."C",
    namespaces text[] COLLATE pg_catalog."C",
    CONSTRAINT access_key_hash_check CHECK ((length(hash) = 32))
);
CREATE TABLE public.attempt (
    seq bigint NOT NULL,
    started_at bigint NOT NULL,
    took bigint NOT NULL,
    number integer NOT NULL,
    status integer,
    id uuid NOT NULL,
    outcome text NOT NULL COLLATE pg_catalog."C",
    detail text COLLATE pg_catalog."C"
);
CREATE TABLE public.definition (
    id uuid NOT NULL,
    asked bigint NOT NULL,
    execute_at bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    revision bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    callback_type text NOT NULL COLLATE pg_catalog."C",
    delivery text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea NOT NULL,
    correlation_id text COLLATE pg_catalog."C",
    retry_policy text COLLATE pg_catalog."C",
    metadata text COLLATE pg_catalog."C",
    callback_config text NOT NULL COLLATE pg_catalog."C",
    due_at bigint
);
CREATE TABLE public.due (
    shard smallint NOT NULL,
    attempt integer NOT NULL,
    id uuid NOT NULL,
    at bigint NOT NULL,
    destination bigint NOT NULL,
    claim bigint,
    epoch bigint,
    lease_until bigint,
    last_error text COLLATE pg_catalog."C"
)
WITH (fillfactor='40', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='1', autovacuum_analyze_scale_factor='0.05', vacuum_truncate='false');
CREATE TABLE public.node (
    id uuid NOT NULL,
    started_at bigint NOT NULL,
    skew_micros bigint NOT NULL,
    lease_until bigint NOT NULL,
    takes_shards boolean NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='20', autovacuum_vacuum_threshold='500', autovacuum_vacuum_scale_factor='0');
CREATE TABLE public.outcome (
    id uuid NOT NULL,
    executed_at bigint,
    finished_at bigint NOT NULL,
    attempt integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    last_error text COLLATE pg_catalog."C"
);
CREATE TABLE public.shard (
    shard smallint NOT NULL,
    epoch bigint NOT NULL,
    owner uuid
)
WITH (fillfactor='20', autovacuum_vacuum_threshold='500', autovacuum_vacuum_scale_factor='0');
CREATE TABLE public.tenure (
    epoch bigint NOT NULL,
    node uuid NOT NULL,
    shard smallint NOT NULL
);
CREATE TABLE public.timer_migration (
    version integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.timer_setup (
    one boolean DEFAULT true NOT NULL,
    shards smallint NOT NULL,
    CONSTRAINT timer_setup_one_check CHECK (one),
    CONSTRAINT timer_setup_shards_check CHECK ((shards > 0))
);
CREATE VIEW public.timers AS
 SELECT (f.id)::text AS id,
    f.namespace,
    f.key,
    to_timestamp((((f.created_at)::numeric / 1000000.0))::double precision) AS created_at,
    to_timestamp((((COALESCE(o.finished_at, f.updated_at))::numeric / 1000000.0))::double precision) AS updated_at,
    to_timestamp((((f.execute_at)::numeric / 1000000.0))::double precision) AS execute_at,
    f.callback_type,
    f.callback_config,
        CASE
            WHEN (o.id IS NOT NULL) THEN o.status
            WHEN (d.claim IS NOT NULL) THEN 'executing'::text
            ELSE 'pending'::text
        END AS status,
    COALESCE(d.attempt, o.attempt) AS attempt,
    COALESCE(d.last_error, o.last_error) AS last_error,
    to_timestamp((((d.at)::numeric / 1000000.0))::double precision) AS next_attempt_at,
    to_timestamp((((o.executed_at)::numeric / 1000000.0))::double precision) AS executed_at,
    f.metadata,
    f.correlation_id,
    f.retry_policy,
    f.delivery,
    f.revision
   FROM (((public.definition f
     CROSS JOIN public.timer_setup s)
     LEFT JOIN public.due d ON (((d.shard = ((((get_byte(uuid_send(f.id), 14) * 256) + get_byte(uuid_send(f.id), 15)) % (s.shards)::integer))::smallint) AND (d.at = COALESCE(f.due_at, f.execute_at)) AND (d.id = f.id))))
     LEFT JOIN public.outcome o ON ((o.id = f.id)));
INSERT INTO public.access_key VALUES ('01977376-07ba-7c59-a623-a67c832e285f', '\xdbdba6975b225bb665a0f57957d8f818bb60f8ced8e5bc37a67119a7257f60f8', 1749988804538708, NULL, 'ops', 'read', '{tenant}');
INSERT INTO public.attempt VALUES (1, 1749988804431631, 6922, 1, 500, '5943ca46-42bc-5bd8-80fc-d6a2747f37e4', 'status_5xx', 'answered 500 Internal Server Error (POST http://127.0.0.1:18099/broken)');
INSERT INTO public.attempt VALUES (1, 1749988804442730, 4534, 1, 503, '77934b0f-5e10-501b-aac4-7d7fb02edf04', 'status_5xx', 'answered 503 Service Unavailable (POST http://127.0.0.1:18099/busy)');
INSERT INTO public.definition VALUES ('56f3a32d-252e-546c-8600-0d76f896a5b9', 1893456000000000, 1893456000000000, 1749988804350766, 1749988804350766, 1, 'default', 'at', 'http', 'at_least_once', '\xa821876684c3a010ab69cda24f8c1cf9', 'c-1', NULL, '{"team":"é"}', '{"type":"http","url":"https://a.example/x","headers":{"X-A":"1"},"payload":{"é": 1.0},"timeout":"30s","protocol":"webhook"}', NULL);
INSERT INTO public.definition VALUES ('f7323a36-6159-5bdc-a16d-573e8247bc84', -31536000000001, 1781524804379697, 1749988804379697, 1749988804379697, 1, 'tenant', 'after', 'http', 'at_most_once', '\xee3837e0298ed5e08e6acc4da18e04cb', NULL, '{"max_retries":3,"initial_interval":"1s","backoff_multiplier":2.0,"max_interval":"1m"}', NULL, '{"type":"http","url":"https://b.example/","timeout":"5s","protocol":"webhook"}', NULL);
INSERT INTO public.definition VALUES ('629e5bdf-5e05-5bec-8b0c-1c68d80a7eb6', 1893456000000000, 1893456000000000, 1749988804390708, 1749988804390708, 1, 'default', 'nats', 'nats', 'at_least_once', '\xa5be8504d42915110e14996942e2b03d', NULL, NULL, NULL, '{"type":"nats","topic":"orders.late","key":"message-key","payload":null,"jetstream":true}', NULL);
INSERT INTO public.definition VALUES ('d16c9e5a-d307-5ee5-ac9b-9d918f660e9d', -1001, 1749988804403745, 1749988804402745, 1749988804402745, 1, 'tenant', 'completed', 'http', 'at_least_once', '\xa33f641f74b228bd77426f574776a167', NULL, NULL, NULL, '{"type":"http","url":"http://127.0.0.1:18099/ok","payload":[1,2],"timeout":"30s","protocol":"webhook"}', NULL);
INSERT INTO public.definition VALUES ('5943ca46-42bc-5bd8-80fc-d6a2747f37e4', -1001, 1749988804420806, 1749988804419806, 1749988804419806, 1, 'default', 'failed', 'http', 'at_least_once', '\x2a37d66e597f32c2e7c0f7e6e373c824', NULL, NULL, NULL, '{"type":"http","url":"http://127.0.0.1:18099/broken","timeout":"30s","protocol":"webhook"}', NULL);
INSERT INTO public.definition VALUES ('3af2cafc-4efd-5f94-afa1-945a15469c6e', 1893456000000000, 1893456000000000, 1749988804443115, 1749988804443115, 1, 'tenant', 'canceled', 'http', 'at_least_once', '\xd097d4a10af6b0f747f1a25fd7f0ff40', NULL, NULL, NULL, '{"type":"http","url":"https://a.example/x","timeout":"30s","protocol":"webhook"}', NULL);
INSERT INTO public.definition VALUES ('77934b0f-5e10-501b-aac4-7d7fb02edf04', -1001, 1749988804432978, 1749988804431978, 1749988804431978, 1, 'default', 'retried', 'http', 'at_least_once', '\x5fd7dd1f29afdaa92b930fc1a65c60cf', NULL, '{"max_retries":3,"initial_interval":"30m","backoff_multiplier":2.0,"max_interval":"30m"}', NULL, '{"type":"http","url":"http://127.0.0.1:18099/busy","timeout":"30s","protocol":"webhook"}', 1749990610572752);
INSERT INTO public.definition VALUES ('15b6f48c-82c7-563a-b9dc-381cb0c64570', 1893542400000000, 1893542400000000, 1749988804482059, 1749988804499289, 2, 'default', 'changed', 'http', 'at_least_once', '\x582fa51eb4147373629278686e433b3c', NULL, NULL, '{"n":2}', '{"type":"http","url":"https://a.example/x","timeout":"30s","protocol":"webhook"}', NULL);
INSERT INTO public.definition VALUES ('01977376-079e-7edd-8aee-9debeebcbd35', -86400000000001, 1836388804510795, 1749988804510795, 1749988804510795, 1, 'default', NULL, 'http', 'at_least_once', '\x01977376079e7edd8aee9debeebcbd35', NULL, NULL, NULL, '{"type":"http","url":"https://a.example/short/01977376-079e-7edd-8aee-9debeebcbd35","timeout":"30s","protocol":"webhook"}', NULL);
INSERT INTO public.definition VALUES ('c2d29051-2358-5c44-92e0-0c9da1b3602f', 1893456000000000, 1893456000000000, 1749988804522849, 1749988804522849, 1, 'tenant', 'v1', 'http', 'at_least_once', '\xc7aee4b2e1b3c5623a87747a83cb0ee1', NULL, NULL, NULL, '{"type":"http","url":"https://a.example/v1","payload":{"n":1},"timeout":"30s","protocol":"timer"}', NULL);
INSERT INTO public.definition VALUES ('8f0b23fc-dc81-5c67-b97c-1de7c115b777', -1001, 1749988804555764, 1749988804554764, 1749988804554764, 1, 'default', 'executing', 'http', 'at_least_once', '\x6b285605b7a90b4862ebe3e825cf553b', NULL, NULL, NULL, '{"type":"http","url":"http://127.0.0.1:18099/hang","timeout":"30s","protocol":"webhook"}', NULL);
INSERT INTO public.due VALUES (57, 0, '56f3a32d-252e-546c-8600-0d76f896a5b9', 1893456000000000, 4062577363141807157, NULL, NULL, NULL, NULL);
INSERT INTO public.due VALUES (4, 0, 'f7323a36-6159-5bdc-a16d-573e8247bc84', 1781524804379697, 3869203875394849016, NULL, NULL, NULL, NULL);
INSERT INTO public.due VALUES (54, 0, '629e5bdf-5e05-5bec-8b0c-1c68d80a7eb6', 1893456000000000, -2311645887741701187, NULL, NULL, NULL, NULL);
INSERT INTO public.due VALUES (4, 1, '77934b0f-5e10-501b-aac4-7d7fb02edf04', 1749990610572752, -4519542783486433671, NULL, NULL, NULL, 'answered 503 Service Unavailable (POST http://127.0.0.1:18099/busy)');
INSERT INTO public.due VALUES (48, 0, '15b6f48c-82c7-563a-b9dc-381cb0c64570', 1893542400000000, 4062577363141807157, NULL, NULL, NULL, NULL);
INSERT INTO public.due VALUES (53, 0, '01977376-079e-7edd-8aee-9debeebcbd35', 1836388804510795, 4062577363141807157, NULL, NULL, NULL, NULL);
INSERT INTO public.due VALUES (47, 0, 'c2d29051-2358-5c44-92e0-0c9da1b3602f', 1893456000000000, 4062577363141807157, NULL, NULL, NULL, NULL);
INSERT INTO public.due VALUES (55, 1, '8f0b23fc-dc81-5c67-b97c-1de7c115b777', 1749988804555764, -4519542783486433671, 1094104565751141823, 1, 1749989404563202, NULL);
INSERT INTO public.node VALUES ('247ebce7-d769-57f9-10c4-a0f96e519bd0', 1749988804262917, -13122, 1749988808069250, true, 'node-1', '0.1.0');
INSERT INTO public.outcome VALUES ('d16c9e5a-d307-5ee5-ac9b-9d918f660e9d', 1749988804419491, 1749988804419491, 1, 'completed', NULL);
INSERT INTO public.outcome VALUES ('5943ca46-42bc-5bd8-80fc-d6a2747f37e4', 1749988804438578, 1749988804438578, 1, 'failed', 'answered 500 Internal Server Error (POST http://127.0.0.1:18099/broken)');
INSERT INTO public.outcome VALUES ('3af2cafc-4efd-5f94-afa1-945a15469c6e', NULL, 1749988804462585, 0, 'canceled', NULL);
INSERT INTO public.shard VALUES (0, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (1, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (2, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (3, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (4, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (5, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (6, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (7, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (8, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (9, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (10, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (11, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (12, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (13, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (14, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (15, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (16, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (17, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (18, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (19, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (20, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (21, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (22, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (23, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (24, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (25, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (26, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (27, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (28, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (29, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (30, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (31, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (32, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (33, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (34, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (35, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (36, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (37, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (38, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (39, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (40, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (41, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (42, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (43, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (44, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (45, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (46, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (47, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (48, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (49, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (50, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (51, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (52, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (53, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (54, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (55, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (56, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (57, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (58, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (59, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (60, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (61, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (62, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.shard VALUES (63, 1, '247ebce7-d769-57f9-10c4-a0f96e519bd0');
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 0);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 1);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 2);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 3);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 4);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 5);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 6);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 7);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 8);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 9);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 10);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 11);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 12);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 13);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 14);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 15);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 16);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 17);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 18);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 19);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 20);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 21);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 22);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 23);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 24);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 25);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 26);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 27);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 28);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 29);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 30);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 31);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 32);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 33);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 34);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 35);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 36);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 37);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 38);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 39);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 40);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 41);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 42);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 43);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 44);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 45);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 46);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 47);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 48);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 49);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 50);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 51);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 52);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 53);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 54);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 55);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 56);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 57);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 58);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 59);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 60);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 61);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 62);
INSERT INTO public.tenure VALUES (1, '247ebce7-d769-57f9-10c4-a0f96e519bd0', 63);
INSERT INTO public.timer_migration VALUES (1, '2025-06-15 12:00:04.074481+00');
INSERT INTO public.timer_migration VALUES (2, '2025-06-15 12:00:04.074481+00');
INSERT INTO public.timer_migration VALUES (3, '2025-06-15 12:00:04.074481+00');
INSERT INTO public.timer_migration VALUES (4, '2025-06-15 12:00:04.074481+00');
INSERT INTO public.timer_setup VALUES (true, 64);
ALTER TABLE ONLY public.access_key
    ADD CONSTRAINT access_key_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.access_key
    ADD CONSTRAINT access_key_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (id, seq);
ALTER TABLE ONLY public.definition
    ADD CONSTRAINT definition_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.due
    ADD CONSTRAINT due_pkey PRIMARY KEY (shard, at, id);
ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outcome
    ADD CONSTRAINT outcome_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.shard
    ADD CONSTRAINT shard_pkey PRIMARY KEY (shard);
ALTER TABLE ONLY public.tenure
    ADD CONSTRAINT tenure_pkey PRIMARY KEY (shard, epoch);
ALTER TABLE ONLY public.timer_migration
    ADD CONSTRAINT timer_migration_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.timer_setup
    ADD CONSTRAINT timer_setup_pkey PRIMARY KEY (one);
CREATE INDEX definition_created ON public.definition USING btree (created_at, id);
CREATE INDEX definition_execute ON public.definition USING btree (((execute_at / 60000000)));
CREATE INDEX definition_namespace ON public.definition USING btree (namespace, created_at, id) WHERE (namespace <> 'default'::text);
CREATE INDEX outcome_canceled ON public.outcome USING btree (id) WHERE (status = 'canceled'::text);
CREATE INDEX outcome_failed ON public.outcome USING btree (id) WHERE (status = 'failed'::text);
CREATE INDEX outcome_finished ON public.outcome USING btree (finished_at);
CREATE INDEX tenure_node ON public.tenure USING btree (node);
