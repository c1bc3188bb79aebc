-- What version 1 wrote beside its migration: one timer in each status, the pending one after a failed attempt.
CREATE TABLE schema_version (
    version INTEGER NOT NULL PRIMARY KEY,
    applied_at INTEGER NOT NULL
) STRICT;
CREATE TABLE setup (
    only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
    shards INTEGER NOT NULL
) STRICT;
PRAGMA application_id = 1953329713;
DELETE FROM shard;
INSERT INTO schema_version VALUES(1,1749992400000000);
INSERT INTO setup VALUES(1,1);
INSERT INTO definition VALUES(X'00000000000070008000000000000001','default',NULL,1749988801000000,1749988801000000,29166480,29166600,'http','at_least_once',1,1749988800000000,1749988800000000,X'0be577f677040763c4aa8dfc03e8803c',NULL,NULL,NULL,'{"type":"http","url":"http://a.example/","payload":{"n":1},"timeout":"30s","protocol":"webhook"}');
INSERT INTO definition VALUES(X'4d4ec1b6a0525161ac23f15abfc0b7fc','tenant','order-2',-2000001,1749988802000000,29166480,29166480,'http','at_least_once',1,1749988800000000,1749988800000000,X'ed67542ff0533cb40543b9f94f79f525',NULL,NULL,NULL,'{"type":"http","url":"http://b.example/","timeout":"30s","protocol":"webhook"}');
INSERT INTO definition VALUES(X'00000000000070008000000000000003','default',NULL,1749988803000000,1749988803000000,29166480,29166480,'nats','at_least_once',1,1749988800000000,1749988800000000,X'5d054728bffb4826877297f249dba544',NULL,NULL,NULL,'{"type":"nats","topic":"orders.late","key":"message-key","payload":null,"jetstream":true}');
INSERT INTO definition VALUES(X'a4f22da7e8fb5a359a3218d882d27a91','default','order-7',1749988803000000,1749988803000000,29166480,29166480,'http','at_most_once',1,1749988800000000,1749988800000000,X'63bbb0f2510a6d2c19603b8316f07fa4','c-7','{"max_retries":3,"initial_interval":"1s","backoff_multiplier":2.0,"max_interval":"1m"}','{"team":"é"}','{"type":"http","url":"https://c.example/x","headers":{"X-A":"1"},"payload":{"é": 1.0},"timeout":"30s","protocol":"webhook"}');
INSERT INTO definition VALUES(X'8fb4b0b1daeb521db343c33143c828ce','tenant','order-5',1749988805000000,1749988805000000,29166480,29166480,'http','at_least_once',1,1749988800000000,1749988800000000,X'1a91dcc8b02efaf7141b57df0c0b8b11',NULL,NULL,NULL,'{"type":"http","url":"http://a.example/","timeout":"30s","protocol":"webhook"}');
INSERT INTO due VALUES(0,29166480,X'4d4ec1b6a0525161ac23f15abfc0b7fc',1749988802000000,1,2462709479448645933,NULL,77,1,1749993000000000);
INSERT INTO due VALUES(0,29166600,X'00000000000070008000000000000001',1749996000000000,1,-5843461364628200570,'HTTP 503',NULL,NULL,NULL);
INSERT INTO outcome VALUES(X'00000000000070008000000000000003','completed',1,NULL,1749992400000000,1749992400000000);
INSERT INTO outcome VALUES(X'8fb4b0b1daeb521db343c33143c828ce','canceled',0,NULL,NULL,1749992400000000);
INSERT INTO outcome VALUES(X'a4f22da7e8fb5a359a3218d882d27a91','failed',1,'HTTP 500',1749992400000000,1749992400000000);
INSERT INTO shard VALUES(0,1,X'00000000000000000000000000000001',1749993000000000);
