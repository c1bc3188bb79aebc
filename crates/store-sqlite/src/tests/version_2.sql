-- What version 2 added to the timers of version 1: an attempt of the one that waits for its retry, and a key.
INSERT INTO schema_version VALUES(2,1749992400000000);
INSERT INTO attempt VALUES(X'00000000000070008000000000000001',1,1,1749988801000000,12000,'status_5xx',503,NULL);
INSERT INTO access_key VALUES(X'00000000000070008000000000000009','ops',zeroblob(32),NULL,'write',1749992400000000,NULL);
