-- A fork's deployment gets no variables and never becomes production. Whatever promotes one has `production` set by then, or
-- sets it in the same transaction. The API turns SQLSTATE BQ004 into 409 deployment_untrusted.
CREATE OR REPLACE FUNCTION deployment_untrusted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'deployment_untrusted' USING ERRCODE = 'BQ004', DETAIL = NEW.id;
END $$;
CREATE OR REPLACE TRIGGER deployment_untrusted BEFORE INSERT OR UPDATE OF production, untrusted ON deployment
  FOR EACH ROW WHEN (NEW.untrusted AND NEW.production) EXECUTE FUNCTION deployment_untrusted();

-- Wakes log streams. One builder writes lines in bulk, so it notifies once for each statement.
CREATE OR REPLACE FUNCTION log_line_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_log', deployment_id) FROM (SELECT DISTINCT deployment_id FROM fresh) f;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER log_line_notify AFTER INSERT ON log_line REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION log_line_notify();
