-- Keeps what a node did within a minute.
-- ?1 namespace, '' for all; ?2 minute, ?3 node, ?4 report
INSERT INTO digest (namespace, minute, node, report) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (namespace, minute, node) DO UPDATE SET report = excluded.report
