-- Keeps what a node did within some minutes, and what it knows of receivers. Removes what is old.
-- $1 namespaces, '' for all together; $2 minutes, $3 nodes, $4 reports; $5 nodes, $6 namespaces, $7
-- destinations, $8 when, $9 reports; $10 the minute and $11 the time before which all is removed
WITH digests AS (
    INSERT INTO digest (namespace, minute, node, report)
    SELECT unnest($1::text[]), unnest($2::bigint[]), unnest($3::uuid[]), unnest($4::text[])
    ON CONFLICT (namespace, minute, node) DO UPDATE SET report = excluded.report
), receivers AS (
    INSERT INTO receiver (node, namespace, destination, written_at, report)
    SELECT unnest($5::uuid[]), unnest($6::text[]), unnest($7::text[]), unnest($8::bigint[]), unnest($9::text[])
    ON CONFLICT (node, namespace, destination) DO UPDATE SET written_at = excluded.written_at, report = excluded.report
), old_digests AS (
    -- Other nodes remove the same rows: what one of them has locked is left to it.
    DELETE FROM digest d
    USING (
        SELECT namespace, minute, node FROM digest WHERE minute < $10::bigint FOR UPDATE SKIP LOCKED
    ) o
    WHERE d.namespace = o.namespace AND d.minute = o.minute AND d.node = o.node
)
DELETE FROM receiver r
USING (
    SELECT node, namespace, destination FROM receiver WHERE written_at < $11::bigint FOR UPDATE SKIP LOCKED
) o
WHERE r.node = o.node AND r.namespace = o.namespace AND r.destination = o.destination
