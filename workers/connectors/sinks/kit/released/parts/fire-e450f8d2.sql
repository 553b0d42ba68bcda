-- Staging and the fire.

-- landed | fenced | already fired (with the first one's figures) | not armed | mismatch | busy.
-- One statement checks and lands: both see the same staged rows, so a stager that commits meanwhile changes nothing.
-- The batch is landed in coordinate order, lane by lane; what the record holds already is absorbed.
CREATE FUNCTION {schema}.fire(
    generation bigint, arm bigint, start jsonb DEFAULT NULL,
    wait_seconds double precision DEFAULT {lock_wait_seconds}, OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET work_mem = '64MB' AS $$
#variable_conflict use_column
DECLARE
    locked record;
    held {schema}.claim;
    staged_count bigint;
    staged_digest text;
    landed_count bigint;
    altered_count bigint;
BEGIN
    SELECT * INTO STRICT locked FROM {schema}.claim_lock(fire.generation, wait_seconds);
    answer := locked.refusal;
    detail := locked.detail;
    held := locked.held;
    IF answer = 'fenced' THEN
        detail := to_jsonb(held);
    END IF;
    IF answer IS NOT NULL THEN
        RETURN;
    ELSIF held.state = 'fired' THEN
        answer := 'already fired';
        detail := to_jsonb(held);
        RETURN;
    ELSIF held.state IS DISTINCT FROM 'open' OR held.armed_count IS NULL OR held.arm IS DISTINCT FROM fire.arm
          OR NOT {schema}.is_allocated(fire.generation) THEN
        answer := 'not armed';
        RETURN;
    END IF;
    WITH batch AS MATERIALIZED (
        SELECT s.lane, s.position, s.ordinal, s.event_id, s.op, s.key, s.digest, a.payload_digest AS accepted_digest
        FROM {schema}.staged s
        LEFT JOIN LATERAL (  -- one look by key for each: grows with the batch, whatever the record holds
            SELECT x.payload_digest FROM {schema}.accepted x
            WHERE x.lane = s.lane AND x.position = s.position AND x.ordinal = s.ordinal LIMIT 1) a ON true
        WHERE s.generation = fire.generation AND s.arm = fire.arm
    ), figures AS MATERIALIZED (
        SELECT count(*) AS entries, concat_ws(':',
            coalesce(sum((b.digest).limb0), 0), coalesce(sum((b.digest).limb1), 0),
            coalesce(sum((b.digest).limb2), 0), coalesce(sum((b.digest).limb3), 0)) AS digest
        FROM batch b
    ), landed AS (
        INSERT INTO {schema}.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest,
                                       op, event_id, key)
        SELECT b.lane, b.position, b.ordinal, fire.generation, clock_timestamp(), pg_current_xact_id(),
               (b.digest).payload_digest, b.op, b.event_id, b.key
        FROM batch b
        WHERE b.accepted_digest IS NULL
            AND (SELECT f.entries = held.armed_count AND f.digest = held.armed_digest FROM figures f)
        ORDER BY b.lane, b.position, b.ordinal
        RETURNING 1
    ), differing AS (
        INSERT INTO {schema}.altered (lane, position, ordinal, offered_digest, accepted_digest, generation, op,
                                      event_id, key)
        SELECT b.lane, b.position, b.ordinal, (b.digest).payload_digest, b.accepted_digest, fire.generation, b.op,
               b.event_id, b.key
        FROM batch b
        WHERE b.accepted_digest <> (b.digest).payload_digest
            AND (SELECT f.entries = held.armed_count AND f.digest = held.armed_digest FROM figures f)
        ON CONFLICT DO NOTHING
    )
    SELECT f.entries, f.digest, (SELECT count(*) FROM landed),
           (SELECT count(*) FROM batch b WHERE b.accepted_digest <> (b.digest).payload_digest)
        INTO STRICT staged_count, staged_digest, landed_count, altered_count FROM figures f;
    IF staged_count <> held.armed_count OR staged_digest <> held.armed_digest THEN
        answer := 'mismatch';
        detail := jsonb_build_object('armed_count', held.armed_count, 'armed_digest', held.armed_digest,
                                     'staged_count', staged_count, 'staged_digest', staged_digest);
        RETURN;
    END IF;
    {effect_of_batch}
    INSERT INTO {schema}.hand_over AS h (lane, position, ordinal, generation)
        SELECT e.key, (e.value ->> 'position')::bigint, coalesce((e.value ->> 'ordinal')::bigint, 0), fire.generation
        FROM jsonb_each(fire.start) e
        ON CONFLICT (lane) DO UPDATE SET position = EXCLUDED.position, ordinal = EXCLUDED.ordinal,
            generation = EXCLUDED.generation, stored_at = clock_timestamp();
    UPDATE {schema}.claim AS c
        SET state = 'fired', fired_at = clock_timestamp(), landed_count = l.landed, start = fire.start,
            absorbed_count = staged_count - l.landed, altered_count = l.altered
        FROM (SELECT landed_count AS landed, altered_count AS altered) l
        WHERE c.generation = fire.generation
        RETURNING to_jsonb(c) INTO STRICT detail;
    answer := 'landed';
END
$$;

-- Takes away staged rows that no open claim's current arm needs; how many. Again until 0.
CREATE FUNCTION {schema}.staged_purge(row_limit bigint DEFAULT 100000) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    purged bigint;
BEGIN
    DELETE FROM {schema}.staged s WHERE s.ctid = ANY (ARRAY(
        SELECT x.ctid FROM {schema}.staged x
        WHERE NOT EXISTS (SELECT FROM {schema}.claim c
                          WHERE c.generation = x.generation AND c.arm = x.arm AND c.state = 'open')
        LIMIT row_limit));
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;
