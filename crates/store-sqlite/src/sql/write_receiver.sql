-- Keeps what a node knows of a receiver.
-- ?1 node, ?2 namespace, ?3 destination, ?4 now, ?5 report
INSERT INTO receiver (node, namespace, destination, written_at, report) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (node, namespace, destination) DO UPDATE SET written_at = excluded.written_at, report = excluded.report
