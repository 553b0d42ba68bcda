-- The kit's owner calls the effect; relays reach it through deliveries and in no other way.
DO $effect$
BEGIN
    IF pg_catalog.to_regprocedure({function_signature_text}) IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_function',
            MESSAGE = pg_catalog.format('the effect %s does not exist', {function_signature_text});
    END IF;
END
$effect$;
GRANT USAGE ON SCHEMA {function_schema} TO {owner};
GRANT EXECUTE ON FUNCTION {function_signature} TO {owner};
REVOKE EXECUTE ON FUNCTION {function_signature} FROM PUBLIC, {relay}, {recoverer}, {auditor};
