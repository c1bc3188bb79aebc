WITH narrow AS (
    DELETE FROM due WHERE id = ANY($1::bigint[])
)
DELETE FROM payload WHERE id = ANY($1::bigint[]);
