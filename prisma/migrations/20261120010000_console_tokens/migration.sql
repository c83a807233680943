-- Tokens that nobody made by hand: the one of a membership, and those of a console. They are in no list and do not count
-- against the quota of tokens.
ALTER TABLE "token" ADD COLUMN "hidden" BOOLEAN NOT NULL DEFAULT false;

DROP TRIGGER "token_count" ON "token";
DROP TRIGGER "token_uncount_revoked" ON "token";
DROP TRIGGER "token_uncount" ON "token";
CREATE TRIGGER "token_count" AFTER INSERT ON "token" FOR EACH ROW
  WHEN (NOT NEW.hidden) EXECUTE FUNCTION count_row('tokens', '1');
CREATE TRIGGER "token_uncount_revoked" AFTER UPDATE OF "revoked_at" ON "token" FOR EACH ROW
  WHEN (NOT NEW.hidden AND OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL) EXECUTE FUNCTION count_row('tokens', '-1');
CREATE TRIGGER "token_uncount" AFTER DELETE ON "token" FOR EACH ROW
  WHEN (NOT OLD.hidden AND OLD.revoked_at IS NULL) EXECUTE FUNCTION count_row('tokens', '-1');

-- The tokens of a session go with it, without an event; every API process hears that those of the person are to be forgotten.
CREATE FUNCTION "notify_session"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_session', OLD."user_id");
  RETURN NULL;
END
$$;
CREATE TRIGGER "session_notify" AFTER DELETE ON "session" FOR EACH ROW EXECUTE FUNCTION notify_session();
