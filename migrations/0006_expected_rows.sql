-- Row counts of messages whose transactions travel to the server together: nobody reads the answers
-- before COMMIT is sent, so a statement that touches another number of rows has to raise.
CREATE FUNCTION pawl.refuse_rows(p_touched bigint, p_expected bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a statement of the handler touched % rows, expect_rows demands %', p_touched, p_expected
        USING ERRCODE = 'PW009';
END
$$;
COMMENT ON FUNCTION pawl.refuse_rows(bigint, bigint) IS
    'Ends a pipelined transaction whose statement did not touch as many rows as expect_rows demands; it is processed alone then.';
