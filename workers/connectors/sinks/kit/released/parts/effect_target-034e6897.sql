-- The mapped target {target_text}: each key's latest event, applied only where it is newer than what was applied.

-- A key as the target sees it: '01' and '1' are one key of an integer column.
CREATE FUNCTION {schema}.target_key(key text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF key IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'not_null_violation',
            MESSAGE = 'an event without a key cannot be applied to the mapped target';
    END IF;
    RETURN (jsonb_populate_record(NULL::{target}, jsonb_build_object({target_key_text}, key))).{target_key}::text;
END
$$;

CREATE FUNCTION {schema}.effect_of_event(
    lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO {schema}.applied AS last (lane, key, position, ordinal, is_tombstone)
        VALUES (effect_of_event.lane, {schema}.target_key(effect_of_event.key), effect_of_event.position,
                effect_of_event.ordinal, effect_of_event.op = 'delete')
        ON CONFLICT (lane, key) DO UPDATE
            SET position = EXCLUDED.position, ordinal = EXCLUDED.ordinal, is_tombstone = EXCLUDED.is_tombstone
            WHERE (last.position, last.ordinal) < (EXCLUDED.position, EXCLUDED.ordinal);
    IF NOT FOUND THEN
        RETURN;
    ELSIF effect_of_event.op = 'delete' THEN
        DELETE FROM {target} t USING (SELECT jsonb_populate_record(
            NULL::{target}, jsonb_build_object({target_key_text}, effect_of_event.key)) AS row) r
            WHERE t.{target_key} = (r.row).{target_key};
    ELSE
        INSERT INTO {target} ({target_columns})
            SELECT {target_values}
            FROM (SELECT jsonb_populate_record(NULL::{target}, {event_members}) AS row) r
            ON CONFLICT ({target_key}) DO UPDATE SET {target_updates};
    END IF;
END
$$;

-- The same for what a fire has landed. Rows of `accepted` under this generation are this fire's: it pauses the rest.
CREATE FUNCTION {schema}.effect_of_batch(generation bigint, arm bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    lane_now text;
BEGIN
    FOR lane_now IN SELECT DISTINCT s.lane FROM {schema}.staged s
                    WHERE s.generation = effect_of_batch.generation AND s.arm = effect_of_batch.arm ORDER BY 1 LOOP
        WITH latest AS MATERIALIZED (
            SELECT DISTINCT ON (landed.target_key) landed.*
            FROM (SELECT s.position, s.ordinal, s.op, s.key, s.content, {schema}.target_key(s.key) AS target_key
                  FROM {schema}.staged s
                  JOIN {schema}.accepted a ON a.lane = s.lane AND a.position = s.position AND a.ordinal = s.ordinal
                  WHERE s.generation = effect_of_batch.generation AND s.arm = effect_of_batch.arm
                      AND s.lane = lane_now AND a.generation = effect_of_batch.generation) landed
            ORDER BY landed.target_key, landed.position DESC, landed.ordinal DESC
        ), newer AS (
            INSERT INTO {schema}.applied AS last (lane, key, position, ordinal, is_tombstone)
                SELECT lane_now, l.target_key, l.position, l.ordinal, l.op = 'delete' FROM latest l
                ON CONFLICT (lane, key) DO UPDATE
                    SET position = EXCLUDED.position, ordinal = EXCLUDED.ordinal, is_tombstone = EXCLUDED.is_tombstone
                    WHERE (last.position, last.ordinal) < (EXCLUDED.position, EXCLUDED.ordinal)
                RETURNING key
        ), deleted AS (
            DELETE FROM {target} t USING (
                SELECT jsonb_populate_record(NULL::{target}, jsonb_build_object({target_key_text}, l.key)) AS row
                FROM latest l JOIN newer n ON n.key = l.target_key WHERE l.op = 'delete') r
                WHERE t.{target_key} = (r.row).{target_key}
        )
        INSERT INTO {target} ({target_columns})
            SELECT {target_values}
            FROM (SELECT jsonb_populate_record(NULL::{target}, {latest_members}) AS row
                  FROM latest l JOIN newer n ON n.key = l.target_key WHERE l.op <> 'delete' OFFSET 0) r
            ON CONFLICT ({target_key}) DO UPDATE SET {target_updates};
    END LOOP;
END
$$;
