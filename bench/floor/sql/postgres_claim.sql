WITH claimed AS (
    UPDATE due SET claimed_at = $2 WHERE id = ANY($1::bigint[]) RETURNING id, due_at
)
SELECT id, due_at, url, body FROM claimed JOIN payload USING (id);
