-- Records an event.
-- ?1 at, ?2 kind, ?3 id, ?4 seq, ?5 moment, ?6 status
INSERT INTO journal (at, kind, id, seq, moment, status)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
