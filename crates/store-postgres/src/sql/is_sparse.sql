-- Whether `due` is a large file with little in it, as after a crowd was fired, and nothing has ended
-- for ten seconds, on whichever node. A row takes about 200 bytes there; a file of less than 32 MiB
-- is not worth it.
SELECT
    pg_relation_size('due') > 33554432
    AND (SELECT n_live_tup FROM pg_stat_all_tables WHERE relid = 'due'::regclass) * 800 < pg_relation_size('due')
    AND coalesce(
        (SELECT max(finished_at) FROM outcome) < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 10000000, true
    )
