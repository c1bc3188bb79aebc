-- Records that claimed timers are tried again, or are due again. The definition follows only when
-- something it says has changed; its revision rises with a new due time. Their attempts are kept,
-- and those that are too many removed.
-- $1 shards, $2 due times, $3 ids, $4 tokens, $5 places in the batch, $6 next due times, $7
-- attempts, $8 errors, $9 whether it is a new due time, $10 epochs; $11 to $16 attempts, $17 how
-- many of them are kept, $18 the answers of their receivers
WITH held AS MATERIALIZED (
    -- The current shard leases.
    SELECT shard, epoch FROM shard WHERE shard = ANY ($1::smallint[])
), settled AS (
    UPDATE due d
    SET at = e.next_at, attempt = e.attempt, last_error = e.error,
        claim = NULL, epoch = NULL, lease_until = NULL
    FROM (
        SELECT
            unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS at, unnest($3::uuid[]) AS id,
            unnest($4::bigint[]) AS token, unnest($5::bigint[]) AS place, unnest($6::bigint[]) AS next_at,
            unnest($7::integer[]) AS attempt, unnest($8::text[]) AS error, unnest($9::boolean[]) AS again,
            unnest($10::bigint[]) AS epoch,
            unnest($11::integer[]) AS a_number, unnest($12::bigint[]) AS a_started_at, unnest($13::bigint[]) AS a_took,
            unnest($14::text[]) AS a_outcome, unnest($15::integer[]) AS a_status, unnest($16::text[]) AS a_detail,
            unnest($18::text[]) AS a_answer
    ) e
    WHERE d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim = e.token
        AND (d.epoch = e.epoch OR ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE)
    RETURNING
        d.id, e.place, e.at, e.next_at, e.again,
        e.a_number, e.a_started_at, e.a_took, e.a_outcome, e.a_status, e.a_detail, e.a_answer
), followed AS (
    UPDATE definition f
    SET due_at = CASE WHEN s.again THEN NULL ELSE s.next_at END,
        execute_at = CASE WHEN s.again THEN s.next_at ELSE f.execute_at END,
        revision = f.revision + s.again::integer
    FROM settled s
    WHERE f.id = ANY (ARRAY[s.id]) AND (s.again OR s.next_at <> s.at)
), remembered AS (
    -- The session that settles a claim holds its row in `due`, and sees what was remembered before
    -- the claim was made: no other session counts on for this timer at the same time.
    INSERT INTO attempt (id, seq, number, started_at, took, outcome, status, detail, answer)
    SELECT
        s.id, coalesce((SELECT max(a.seq) FROM attempt a WHERE a.id = s.id), 0) + 1,
        s.a_number, s.a_started_at, s.a_took, s.a_outcome, s.a_status, s.a_detail, s.a_answer
    FROM settled s
    WHERE s.a_number IS NOT NULL
    RETURNING id, seq
), forgotten AS (
    DELETE FROM attempt a USING remembered r WHERE a.id = ANY (ARRAY[r.id]) AND a.seq <= r.seq - $17::bigint
)
SELECT place FROM settled
