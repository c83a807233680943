-- A node that is to drain hears of it at once, not only at its next heartbeat.
CREATE OR REPLACE FUNCTION notify_node() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_node', NEW.id);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER node_notify AFTER UPDATE OF draining ON node FOR EACH ROW
  WHEN (OLD.draining IS DISTINCT FROM NEW.draining) EXECUTE FUNCTION notify_node();
