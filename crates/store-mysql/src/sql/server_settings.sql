-- Whether the server keeps what it has acknowledged.
SELECT
    CAST(@@global.innodb_flush_log_at_trx_commit AS SIGNED) AS flush_at_commit,
    CAST(@@global.sync_binlog AS SIGNED) AS sync_binlog,
    CAST(@@global.log_bin AS SIGNED) AS log_bin
