-- The effects of the events that were accepted, in their order, in the transaction that accepted them.
CREATE FUNCTION {schema}.effects_of_many(events jsonb, answers text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    event jsonb;
BEGIN
    FOR event IN
        SELECT x.value FROM jsonb_array_elements(events) WITH ORDINALITY x
        WHERE answers[x.ordinality] = 'accepted' ORDER BY x.ordinality
    LOOP
        PERFORM {schema}.effect_of_event(coalesce(event ->> 'lane', '0'), (event ->> 'position')::bigint,
                                         coalesce((event ->> 'ordinal')::bigint, 0), event ->> 'op', event ->> 'key',
                                         event -> 'content');
    END LOOP;
END
$$;
