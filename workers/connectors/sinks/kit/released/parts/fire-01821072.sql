-- Staging and the fire.

-- What a batch's staged rows come to, in the terms it was armed with. Stable: it sees the rows its caller's statement sees.
CREATE FUNCTION {schema}.staged_figures(held {schema}.claim, OUT entries bigint, OUT digest text)
LANGUAGE sql STABLE AS $$
    SELECT count(*), concat_ws(':',
        coalesce(sum((s.digest).limb0), 0), coalesce(sum((s.digest).limb1), 0),
        coalesce(sum((s.digest).limb2), 0), coalesce(sum((s.digest).limb3), 0))
    FROM {schema}.staged s
    WHERE s.generation = held.generation AND s.arm = held.arm
$$;

-- Lands the armed batch where it is staged as armed and every entry is new. How many entries; null where one was not.
CREATE FUNCTION {schema}.land_new(held {schema}.claim) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    landed_count bigint;
BEGIN
    INSERT INTO {schema}.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest, op,
                                   event_id, key)
        SELECT s.lane, s.position, s.ordinal, held.generation, clock_timestamp(), pg_current_xact_id(),
               (s.digest).payload_digest, s.op, s.event_id, s.key
        FROM {schema}.staged s
        WHERE s.generation = held.generation AND s.arm = held.arm
            AND (SELECT f.entries = held.armed_count AND f.digest = held.armed_digest FROM {schema}.staged_figures(held) f)
        ORDER BY s.lane, s.position, s.ordinal;
    GET DIAGNOSTICS landed_count = ROW_COUNT;
    RETURN landed_count;
EXCEPTION WHEN unique_violation THEN
    RETURN NULL;
END
$$;

-- The same where the record may hold some of it. `accepted` is looked at once by key for each entry: the cost grows with
-- the batch, whatever the record holds.
CREATE FUNCTION {schema}.land_rest(
    held {schema}.claim, OUT staged_count bigint, OUT staged_digest text, OUT landed_count bigint, OUT altered_count bigint
) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
    WITH figures AS MATERIALIZED (
        SELECT f.entries, f.digest FROM {schema}.staged_figures(held) f
    ), landed AS (
        INSERT INTO {schema}.accepted (lane, position, ordinal, generation, accepted_at, admitted_in, payload_digest,
                                       op, event_id, key)
        SELECT s.lane, s.position, s.ordinal, held.generation, clock_timestamp(), pg_current_xact_id(),
               (s.digest).payload_digest, s.op, s.event_id, s.key
        FROM {schema}.staged s
        LEFT JOIN LATERAL (
            SELECT true AS is_accepted FROM {schema}.accepted x
            WHERE x.lane = s.lane AND x.position = s.position AND x.ordinal = s.ordinal LIMIT 1) a ON true
        WHERE s.generation = held.generation AND s.arm = held.arm AND a.is_accepted IS NULL
            AND (SELECT f.entries = held.armed_count AND f.digest = held.armed_digest FROM figures f)
        ORDER BY s.lane, s.position, s.ordinal
        RETURNING 1
    ), counted AS MATERIALIZED (
        SELECT count(*) AS landed FROM landed
    ), differing AS MATERIALIZED (
        SELECT s.lane, s.position, s.ordinal, s.event_id, s.op, s.key, (s.digest).payload_digest AS offered_digest,
               a.payload_digest AS accepted_digest
        FROM {schema}.staged s
        CROSS JOIN LATERAL (
            SELECT x.payload_digest FROM {schema}.accepted x
            WHERE x.lane = s.lane AND x.position = s.position AND x.ordinal = s.ordinal LIMIT 1) a
        WHERE s.generation = held.generation AND s.arm = held.arm AND a.payload_digest <> (s.digest).payload_digest
            AND (SELECT f.entries = held.armed_count AND f.digest = held.armed_digest AND f.entries > c.landed
                 FROM figures f, counted c)
    ), told AS (
        INSERT INTO {schema}.altered (lane, position, ordinal, offered_digest, accepted_digest, generation, op,
                                      event_id, key)
        SELECT d.lane, d.position, d.ordinal, d.offered_digest, d.accepted_digest, held.generation, d.op, d.event_id,
               d.key
        FROM differing d
        ON CONFLICT DO NOTHING
    )
    SELECT f.entries, f.digest, c.landed, (SELECT count(*) FROM differing)
        INTO STRICT staged_count, staged_digest, landed_count, altered_count FROM figures f, counted c;
END
$$;

-- landed | fenced | already fired (with the first one's figures) | not armed | mismatch | busy.
-- One statement checks and lands: both see the same staged rows, so a stager that commits meanwhile changes nothing.
-- The batch is landed in coordinate order, lane by lane; what the record holds already is absorbed. A batch read under
-- its claim is new as a whole, so that is tried first; the look at the record for each entry costs half as much again.
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
        detail := {schema}.claim_told(held);
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
    landed_count := {schema}.land_new(held);
    IF landed_count > 0 THEN
        staged_count := held.armed_count;
        altered_count := 0;
    ELSE
        SELECT l.staged_count, l.staged_digest, l.landed_count, l.altered_count
            INTO STRICT staged_count, staged_digest, landed_count, altered_count FROM {schema}.land_rest(held) l;
        IF staged_count <> held.armed_count OR staged_digest <> held.armed_digest THEN
            answer := 'mismatch';
            detail := jsonb_build_object('armed_count', held.armed_count, 'armed_digest', held.armed_digest,
                                         'staged_count', staged_count, 'staged_digest', staged_digest);
            RETURN;
        END IF;
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
