-- The kit's owner applies the effects; relays write the target through deliveries and in no other way.
DO $target$
BEGIN
    IF pg_catalog.to_regclass({target_text}) IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_table',
            MESSAGE = pg_catalog.format('the target %s does not exist', {target_text});
    ELSIF NOT EXISTS (
        SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid
            AND a.attnum = i.indkey[0]
        WHERE i.indrelid = pg_catalog.to_regclass({target_text}) AND i.indisunique AND i.indimmediate AND i.indpred IS NULL
            AND i.indnkeyatts = 1 AND a.attname = {target_key_text}) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_column_reference',
            MESSAGE = pg_catalog.format('the target %s has no unique index on %I alone', {target_text},
                                        {target_key_text});
    END IF;
END
$target$;
GRANT USAGE ON SCHEMA {target_schema} TO {owner};
GRANT SELECT, INSERT, UPDATE, DELETE ON {target} TO {owner};
REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {target} FROM PUBLIC, {relay}, {recoverer}, {auditor};
