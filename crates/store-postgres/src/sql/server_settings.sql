-- Whether the server is fit, and whether it keeps what it has acknowledged.
SELECT
    current_setting('server_version_num')::integer AS version,
    current_setting('server_encoding') AS encoding,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit
