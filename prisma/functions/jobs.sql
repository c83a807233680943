-- Wakes workers: a job is due, or due earlier than before.
CREATE OR REPLACE FUNCTION job_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_job', NEW.kind);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER job_notify AFTER INSERT ON job FOR EACH ROW EXECUTE FUNCTION job_notify();
CREATE OR REPLACE TRIGGER job_notify_sooner AFTER UPDATE OF run_at ON job FOR EACH ROW
  WHEN (NEW.run_at < OLD.run_at AND NEW.locked_by IS NULL AND NEW.failed_at IS NULL)
  EXECUTE FUNCTION job_notify();
