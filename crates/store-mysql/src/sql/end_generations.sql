-- Removes generations that are over, and locked.
-- numbers
DELETE g
FROM JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) w
STRAIGHT_JOIN generation g ON g.n = w.n
