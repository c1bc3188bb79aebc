-- A database of the program of version 4 (commit c2772bc), filled through its API on 2025-06-15 at 12:00 of a clock that was set
-- back, and killed in the middle of a call. `store_conformance::version_4` says what it was asked for.
PRAGMA application_id = 1953329713;
CREATE TABLE access_key (
    id         BLOB    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE,
    namespaces TEXT,
    rights     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO "access_key" VALUES(X'01977375FA2271DFB59699FD4EE92B57','ops',X'FA61EB8794951C3017B1545C1190ECD191AC6AA4C6896B095CA7E0CB54FCE089','["tenant"]','read',1749988801058782,NULL);
CREATE TABLE attempt (
    id         BLOB    NOT NULL,
    seq        INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    took       INTEGER NOT NULL,
    outcome    TEXT    NOT NULL,
    status     INTEGER,
    detail     TEXT,
    PRIMARY KEY (id, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO "attempt" VALUES(X'5943CA4642BC5BD880FCD6A2747F37E4',1,1,1749988800943689,5177,'status_5xx',500,'answered 500 Internal Server Error (POST http://127.0.0.1:18099/broken)');
INSERT INTO "attempt" VALUES(X'77934B0F5E10501BAAC47D7FB02EDF04',1,1,1749988800982639,5712,'status_5xx',503,'answered 503 Service Unavailable (POST http://127.0.0.1:18099/busy)');
CREATE TABLE definition (
    id              BLOB    NOT NULL PRIMARY KEY,
    namespace       TEXT    NOT NULL,
    key             TEXT,
    asked           INTEGER NOT NULL,
    execute_at      INTEGER NOT NULL,
    execute_minute  INTEGER NOT NULL,
    due_minute      INTEGER NOT NULL,
    callback_type   TEXT    NOT NULL,
    delivery        TEXT    NOT NULL,
    revision        INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    fingerprint     BLOB    NOT NULL,
    correlation_id  TEXT,
    retry_policy    TEXT,
    metadata        TEXT,
    callback_config TEXT    NOT NULL
) STRICT;
INSERT INTO "definition" VALUES(X'56F3A32D252E546C86000D76F896A5B9','default','at',1893456000000000,1893456000000000,31557600,31557600,'http','at_least_once',1,1749988800912057,1749988800912057,X'A821876684C3A010AB69CDA24F8C1CF9','c-1',NULL,'{"team":"é"}','{"type":"http","url":"https://a.example/x","headers":{"X-A":"1"},"payload":{"é": 1.0},"timeout":"30s","protocol":"webhook"}');
INSERT INTO "definition" VALUES(X'F7323A3661595BDCA16D573E8247BC84','tenant','after',-31536000000001,1781524800915515,29692080,29692080,'http','at_most_once',1,1749988800915515,1749988800915515,X'EE3837E0298ED5E08E6ACC4DA18E04CB',NULL,'{"max_retries":3,"initial_interval":"1s","backoff_multiplier":2.0,"max_interval":"1m"}',NULL,'{"type":"http","url":"https://b.example/","timeout":"5s","protocol":"webhook"}');
INSERT INTO "definition" VALUES(X'629E5BDF5E055BEC8B0C1C68D80A7EB6','default','nats',1893456000000000,1893456000000000,31557600,31557600,'nats','at_least_once',1,1749988800917157,1749988800917157,X'A5BE8504D42915110E14996942E2B03D',NULL,NULL,NULL,'{"type":"nats","topic":"orders.late","key":"message-key","payload":null,"jetstream":true}');
INSERT INTO "definition" VALUES(X'D16C9E5AD3075EE5AC9B9D918F660E9D','tenant','completed',-1001,1749988800919556,29166480,29166480,'http','at_least_once',1,1749988800918556,1749988800918556,X'A33F641F74B228BD77426F574776A167',NULL,NULL,NULL,'{"type":"http","url":"http://127.0.0.1:18099/ok","payload":[1,2],"timeout":"30s","protocol":"webhook"}');
INSERT INTO "definition" VALUES(X'5943CA4642BC5BD880FCD6A2747F37E4','default','failed',-1001,1749988800921342,29166480,29166480,'http','at_least_once',1,1749988800920342,1749988800920342,X'2A37D66E597F32C2E7C0F7E6E373C824',NULL,NULL,NULL,'{"type":"http","url":"http://127.0.0.1:18099/broken","timeout":"30s","protocol":"webhook"}');
INSERT INTO "definition" VALUES(X'77934B0F5E10501BAAC47D7FB02EDF04','default','retried',-1001,1749988800950198,29166480,29166512,'http','at_least_once',1,1749988800949198,1749988800949198,X'5FD7DD1F29AFDAA92B930FC1A65C60CF',NULL,'{"max_retries":3,"initial_interval":"30m","backoff_multiplier":2.0,"max_interval":"30m"}',NULL,'{"type":"http","url":"http://127.0.0.1:18099/busy","timeout":"30s","protocol":"webhook"}');
INSERT INTO "definition" VALUES(X'3AF2CAFC4EFD5F94AFA1945A15469C6E','tenant','canceled',1893456000000000,1893456000000000,31557600,31557600,'http','at_least_once',1,1749988800970762,1749988800970762,X'D097D4A10AF6B0F747F1A25FD7F0FF40',NULL,NULL,NULL,'{"type":"http","url":"https://a.example/x","timeout":"30s","protocol":"webhook"}');
INSERT INTO "definition" VALUES(X'15B6F48C82C7563AB9DC381CB0C64570','default','changed',1893542400000000,1893542400000000,31559040,31559040,'http','at_least_once',2,1749988801002482,1749988801008581,X'582FA51EB4147373629278686E433B3C',NULL,NULL,'{"n":2}','{"type":"http","url":"https://a.example/x","timeout":"30s","protocol":"webhook"}');
INSERT INTO "definition" VALUES(X'01977375FA02783B8D8CC5A35A9C7A96','default',NULL,-86400000000001,1836388801026757,30606480,30606480,'http','at_least_once',1,1749988801026757,1749988801026757,X'01977375FA02783B8D8CC5A35A9C7A96',NULL,NULL,NULL,'{"type":"http","url":"https://a.example/short/01977375-fa02-783b-8d8c-c5a35a9c7a96","timeout":"30s","protocol":"webhook"}');
INSERT INTO "definition" VALUES(X'C2D2905123585C4492E00C9DA1B3602F','tenant','v1',1893456000000000,1893456000000000,31557600,31557600,'http','at_least_once',1,1749988801042866,1749988801042866,X'C7AEE4B2E1B3C5623A87747A83CB0EE1',NULL,NULL,NULL,'{"type":"http","url":"https://a.example/v1","payload":{"n":1},"timeout":"30s","protocol":"timer"}');
INSERT INTO "definition" VALUES(X'8F0B23FCDC815C67B97C1DE7C115B777','default','executing',-1001,1749988801070246,29166480,29166480,'http','at_least_once',1,1749988801069246,1749988801069246,X'6B285605B7A90B4862EBE3E825CF553B',NULL,NULL,NULL,'{"type":"http","url":"http://127.0.0.1:18099/hang","timeout":"30s","protocol":"webhook"}');
CREATE TABLE due (
    shard       INTEGER NOT NULL,
    minute      INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    at          INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    last_error  TEXT,
    claim       INTEGER,
    epoch       INTEGER,
    lease_until INTEGER, execute_at INTEGER, namespace TEXT,
    PRIMARY KEY (shard, minute, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "due" VALUES(0,29166480,X'8F0B23FCDC815C67B97C1DE7C115B777',1749988801070246,1,-4519542783486433671,NULL,2271077824921672494,1,1749989401078859,NULL,NULL);
INSERT INTO "due" VALUES(0,29166512,X'77934B0F5E10501BAAC47D7FB02EDF04',1749990728591473,1,-4519542783486433671,'answered 503 Service Unavailable (POST http://127.0.0.1:18099/busy)',NULL,NULL,NULL,1749988800950198,NULL);
INSERT INTO "due" VALUES(0,29692080,X'F7323A3661595BDCA16D573E8247BC84',1781524800915515,0,3869203875394849016,NULL,NULL,NULL,NULL,NULL,'tenant');
INSERT INTO "due" VALUES(0,30606480,X'01977375FA02783B8D8CC5A35A9C7A96',1836388801026757,0,4062577363141807157,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "due" VALUES(0,31557600,X'56F3A32D252E546C86000D76F896A5B9',1893456000000000,0,4062577363141807157,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "due" VALUES(0,31557600,X'629E5BDF5E055BEC8B0C1C68D80A7EB6',1893456000000000,0,-2311645887741701187,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "due" VALUES(0,31557600,X'C2D2905123585C4492E00C9DA1B3602F',1893456000000000,0,4062577363141807157,NULL,NULL,NULL,NULL,NULL,'tenant');
INSERT INTO "due" VALUES(0,31559040,X'15B6F48C82C7563AB9DC381CB0C64570',1893542400000000,0,4062577363141807157,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE "outcome" (
    minute      INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    execute_at  INTEGER NOT NULL,
    status      TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    namespace   TEXT,
    last_error  TEXT,
    executed_at INTEGER,
    finished_at INTEGER NOT NULL,
    PRIMARY KEY (minute, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "outcome" VALUES(29166480,X'5943CA4642BC5BD880FCD6A2747F37E4',1749988800921342,'failed',1,NULL,'answered 500 Internal Server Error (POST http://127.0.0.1:18099/broken)',1749988800948882,1749988800948882);
INSERT INTO "outcome" VALUES(29166480,X'D16C9E5AD3075EE5AC9B9D918F660E9D',1749988800919556,'completed',1,'tenant',NULL,1749988800941658,1749988800941658);
INSERT INTO "outcome" VALUES(31557600,X'3AF2CAFC4EFD5F94AFA1945A15469C6E',1893456000000000,'canceled',0,'tenant',NULL,NULL,1749988800990761);
CREATE TABLE schema_version (
             version INTEGER NOT NULL PRIMARY KEY,
             applied_at INTEGER NOT NULL
         ) STRICT;
INSERT INTO "schema_version" VALUES(1,1749988800810786);
INSERT INTO "schema_version" VALUES(2,1749988800810786);
INSERT INTO "schema_version" VALUES(3,1749988800810786);
INSERT INTO "schema_version" VALUES(4,1749988800810786);
CREATE TABLE setup (
             only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
             shards INTEGER NOT NULL
         ) STRICT;
INSERT INTO "setup" VALUES(1,1);
CREATE TABLE shard (
    shard       INTEGER NOT NULL PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    owner       BLOB) STRICT;
INSERT INTO "shard" VALUES(0,1,X'8B5A59F2A0A1E165F97C1690D3C4F5C1');
CREATE TABLE tally (
    namespace TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    timers    INTEGER NOT NULL,
    PRIMARY KEY (namespace, status)
) STRICT, WITHOUT ROWID;
INSERT INTO "tally" VALUES('default','executing',1);
INSERT INTO "tally" VALUES('default','failed',1);
INSERT INTO "tally" VALUES('default','pending',5);
INSERT INTO "tally" VALUES('tenant','canceled',1);
INSERT INTO "tally" VALUES('tenant','completed',1);
INSERT INTO "tally" VALUES('tenant','pending',2);
CREATE INDEX definition_created ON definition (created_at, id);
CREATE INDEX definition_namespace ON definition (namespace, created_at, id) WHERE namespace <> 'default';
CREATE INDEX due_moved ON due (execute_at, id) WHERE execute_at IS NOT NULL;
CREATE INDEX due_claimed ON due (minute) WHERE claim IS NOT NULL;
CREATE INDEX outcome_finished ON outcome (finished_at);
CREATE INDEX outcome_failed ON outcome (id) WHERE status = 'failed';
CREATE INDEX outcome_canceled ON outcome (id) WHERE status = 'canceled';
CREATE VIEW timers AS
SELECT
    substr(lower(hex(d.id)), 1, 8) || '-' || substr(lower(hex(d.id)), 9, 4) || '-' || substr(lower(hex(d.id)), 13, 4)
        || '-' || substr(lower(hex(d.id)), 17, 4) || '-' || substr(lower(hex(d.id)), 21) AS id,
    d.namespace,
    d.key,
    strftime('%Y-%m-%dT%H:%M:%S', d.created_at / 1000000, 'unixepoch')
        || printf('.%06dZ', d.created_at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', coalesce(o.finished_at, d.updated_at) / 1000000, 'unixepoch')
        || printf('.%06dZ', coalesce(o.finished_at, d.updated_at) % 1000000) AS updated_at,
    strftime('%Y-%m-%dT%H:%M:%S', d.execute_at / 1000000, 'unixepoch')
        || printf('.%06dZ', d.execute_at % 1000000) AS execute_at,
    d.callback_type,
    d.callback_config,
    CASE WHEN o.id IS NOT NULL THEN o.status WHEN u.claim IS NOT NULL THEN 'executing' ELSE 'pending' END AS status,
    coalesce(u.attempt, o.attempt) AS attempt,
    coalesce(u.last_error, o.last_error) AS last_error,
    strftime('%Y-%m-%dT%H:%M:%S', u.at / 1000000, 'unixepoch') || printf('.%06dZ', u.at % 1000000) AS next_attempt_at,
    strftime('%Y-%m-%dT%H:%M:%S', o.executed_at / 1000000, 'unixepoch')
        || printf('.%06dZ', o.executed_at % 1000000) AS executed_at,
    d.metadata,
    d.correlation_id,
    d.retry_policy,
    d.delivery,
    d.revision
FROM definition d
LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id;
