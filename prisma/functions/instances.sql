-- For edges, runners, and builds that wait for their server to answer.
CREATE OR REPLACE FUNCTION notify_instance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_instance', COALESCE(NEW.deployment_id, OLD.deployment_id));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER instance_notify AFTER INSERT OR UPDATE OR DELETE ON instance
  FOR EACH ROW EXECUTE FUNCTION notify_instance();
