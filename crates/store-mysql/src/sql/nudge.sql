-- Tells the other nodes that timers are due soon.
-- sender; rows with at, id, destination
INSERT INTO nudge (sender, at, id, destination)
SELECT ?, w.at, UNHEX(w.id), w.destination
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', destination BIGINT PATH '$.destination'
)) w
