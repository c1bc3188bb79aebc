WITH narrow AS (
    INSERT INTO due (id, due_at) SELECT * FROM UNNEST($1::bigint[], $2::bigint[])
)
INSERT INTO payload (id, url, body) SELECT * FROM UNNEST($1::bigint[], $3::text[], $4::bytea[]);
