-- The last applied coordinate of each key of the mapped target; a deleted key stays as a tombstone. Its key has the
-- column's own type and collation, so that two keys are one here exactly where they are one in the target.
CREATE TABLE {schema}.applied AS
    SELECT ''::text COLLATE "C" AS lane, t.{target_key} AS key, 0::bigint AS position, 0::bigint AS ordinal,
           false AS is_tombstone
    FROM {target} t WITH NO DATA;
ALTER TABLE {schema}.applied
    ALTER lane SET NOT NULL, ALTER key SET NOT NULL, ALTER position SET NOT NULL, ALTER ordinal SET NOT NULL,
    ALTER is_tombstone SET NOT NULL, ADD PRIMARY KEY (lane, key);

-- Whether two keys are one, by the operator of the index that makes them one: found here and named with its schema, for
-- no search path leads to an extension's. The target's own unique index must go by the same operator, and by the same
-- collation where one of them takes different texts for equal.
DO $key$
DECLARE
    is_alike boolean;
    operator text;
    collation_text text;
    key_type text;
BEGIN
    WITH compared AS (
        SELECT i.indrelid, a.atttypid, a.attcollation, m.amopopr,
               i.indcollation[x.nth] = a.attcollation OR NOT EXISTS (
                   SELECT FROM pg_catalog.pg_collation l
                   WHERE l.oid IN (i.indcollation[x.nth], a.attcollation) AND NOT l.collisdeterministic) AS is_alike
        FROM pg_catalog.pg_index i
        CROSS JOIN LATERAL (SELECT i.indnkeyatts - 1 AS nth) x
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[x.nth]
        JOIN pg_catalog.pg_opclass c ON c.oid = i.indclass[x.nth]
        JOIN pg_catalog.pg_amop m ON m.amopfamily = c.opcfamily AND m.amopstrategy = 3
            AND m.amoplefttype = c.opcintype AND m.amoprighttype = c.opcintype
        WHERE i.indisunique AND i.indpred IS NULL AND i.indimmediate
            AND (i.indrelid = {applied_text}::pg_catalog.regclass AND i.indisprimary
                 OR i.indrelid = {target_text}::pg_catalog.regclass AND i.indnkeyatts = 1
                    AND a.attname = {target_key_text})
    )
    SELECT EXISTS (SELECT FROM compared t
                   WHERE t.indrelid <> k.indrelid AND t.amopopr = k.amopopr AND t.is_alike),
           pg_catalog.format('OPERATOR(%I.%s)', n.nspname, o.oprname), pg_catalog.format_type(k.atttypid, -1),
           coalesce((SELECT pg_catalog.format(' COLLATE %I.%I', ln.nspname, l.collname) FROM pg_catalog.pg_collation l
                     JOIN pg_catalog.pg_namespace ln ON ln.oid = l.collnamespace WHERE l.oid = k.attcollation), '')
        INTO STRICT is_alike, operator, key_type, collation_text
        FROM compared k
        JOIN pg_catalog.pg_operator o ON o.oid = k.amopopr
        JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
        WHERE k.indrelid = {applied_text}::pg_catalog.regclass;
    IF NOT is_alike THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_column_reference',
            MESSAGE = pg_catalog.format('the unique index of %s on %I compares keys otherwise than the column does',
                                        {target_text}, {target_key_text});
    END IF;
    EXECUTE pg_catalog.format(
        'CREATE FUNCTION {schema}.is_same_key(a %1$s, b %1$s) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE '
        'RETURN a %2$s b%3$s', key_type, operator, collation_text);
END
$key$;
