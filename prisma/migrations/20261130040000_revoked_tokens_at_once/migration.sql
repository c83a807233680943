-- A line of tokens is revoked in one statement, and counted once. Counted token by token, each change of the counter read
-- past all earlier ones of its transaction, so that a line twice as long took four times as long.
CREATE FUNCTION uncount_tokens() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  gone RECORD;
BEGIN
  FOR gone IN SELECT account_id, count(*) AS count FROM live WHERE NOT hidden AND revoked_at IS NULL GROUP BY account_id LOOP
    PERFORM count_usage(gone.account_id, 'tokens', -gone.count);
  END LOOP;
  RETURN NULL;
END
$$;
CREATE FUNCTION uncount_revoked_tokens() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  gone RECORD;
BEGIN
  FOR gone IN
    SELECT t.account_id, count(*) AS count FROM was JOIN t USING (id)
    WHERE NOT t.hidden AND was.revoked_at IS NULL AND t.revoked_at IS NOT NULL GROUP BY t.account_id
  LOOP
    PERFORM count_usage(gone.account_id, 'tokens', -gone.count);
  END LOOP;
  RETURN NULL;
END
$$;
DROP TRIGGER "token_uncount_revoked" ON "token";
DROP TRIGGER "token_uncount" ON "token";
CREATE TRIGGER "token_uncount_revoked" AFTER UPDATE ON "token" REFERENCING OLD TABLE AS was NEW TABLE AS t
  FOR EACH STATEMENT EXECUTE FUNCTION uncount_revoked_tokens();
CREATE TRIGGER "token_uncount" AFTER DELETE ON "token" REFERENCING OLD TABLE AS live
  FOR EACH STATEMENT EXECUTE FUNCTION uncount_tokens();
