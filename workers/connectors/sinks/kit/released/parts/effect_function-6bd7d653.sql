-- The named effect {function_text}, declared {effect_order}: called once for each entry as it is accepted; the entries of
-- a fire in coordinate order, lane by lane.
CREATE FUNCTION {schema}.effect_of_event(
    lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM {function}(lane, effect_of_event.position, ordinal, op, key, content);
END
$$;

CREATE FUNCTION {schema}.effect_of_batch(generation bigint, arm bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    landed record;
BEGIN
    FOR landed IN
        SELECT s.lane, s.position, s.ordinal, s.op, s.key, s.content
        FROM {schema}.staged s
        JOIN {schema}.accepted a ON a.lane = s.lane AND a.position = s.position AND a.ordinal = s.ordinal
        WHERE s.generation = effect_of_batch.generation AND s.arm = effect_of_batch.arm
            AND a.generation = effect_of_batch.generation
        ORDER BY s.lane, s.position, s.ordinal
    LOOP
        PERFORM {function}(landed.lane, landed.position, landed.ordinal, landed.op, landed.key, landed.content);
    END LOOP;
END
$$;
