-- Takes space on the server's disk for a moment: a temporary table of a quarter of a megabyte,
-- which is given back at once even when the disk is full.
CREATE TEMPORARY TABLE timer_probe AS
SELECT g, md5(g::text) FROM generate_series(1, 4096) AS g;
DROP TABLE timer_probe
