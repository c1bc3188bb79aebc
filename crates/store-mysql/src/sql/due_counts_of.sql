-- How many timers of some shards and some namespaces are pending in each bucket. The tenant in the
-- destination leaves out most others; of the rest, the definition says whose they are.
-- from, the length of a bucket; from, to; all times in microseconds; namespaces in hexadecimal
SELECT (d.at - ?) DIV ? AS bucket, COUNT(*) AS pending
FROM due d
WHERE d.shard IN (/* shards */ 0) AND d.at >= ? AND d.at < ? AND d.claim IS NULL
    AND ((d.destination >> 40) & 16777215) IN (/* tenants */ 0)
    AND (SELECT f.namespace FROM definition f WHERE f.id = d.id) IN (
        SELECT UNHEX(w.name) FROM JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(2040) PATH '$')) w
    )
GROUP BY bucket
