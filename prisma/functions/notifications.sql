-- Wakes whoever serves from memory. Notifications only save time: every listener also polls or compares.

-- For a table whose rows are told by one of their columns: the channel, and that column.
CREATE OR REPLACE FUNCTION notify_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(TG_ARGV[0], CASE TG_OP WHEN 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END ->> TG_ARGV[1]);
  RETURN NULL;
END $$;

-- Whoever terminates TLS: a name has another certificate.
CREATE OR REPLACE TRIGGER domain_certificate_notify AFTER UPDATE OF certificate_id, verified ON domain
  FOR EACH ROW EXECUTE FUNCTION notify_row('berth_certificate', 'name');
CREATE OR REPLACE TRIGGER domain_certificate_notify_delete AFTER DELETE ON domain
  FOR EACH ROW WHEN (OLD.certificate_id IS NOT NULL) EXECUTE FUNCTION notify_row('berth_certificate', 'name');

-- The platform's own certificates are told by their first name.
CREATE OR REPLACE FUNCTION certificate_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_certificate', COALESCE(NEW.names[1], OLD.names[1]));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER certificate_notify AFTER INSERT OR UPDATE ON certificate
  FOR EACH ROW WHEN (NEW.account_id IS NULL) EXECUTE FUNCTION certificate_notify();
CREATE OR REPLACE TRIGGER certificate_notify_delete AFTER DELETE ON certificate
  FOR EACH ROW WHEN (OLD.account_id IS NULL) EXECUTE FUNCTION certificate_notify();

-- Every edge, since the authority may ask any of them.
CREATE OR REPLACE TRIGGER acme_challenge_notify AFTER INSERT OR UPDATE OR DELETE ON acme_challenge
  FOR EACH ROW EXECUTE FUNCTION notify_row('berth_challenge', 'token');

-- Nameservers, which have all keys in memory. A key never changes.
CREATE OR REPLACE TRIGGER dns_key_notify AFTER INSERT OR DELETE ON dns_key
  FOR EACH ROW EXECUTE FUNCTION notify_row('berth_dns_key', 'id');

-- Nameservers, as zone_notify() does for the zones of customers.
CREATE OR REPLACE TRIGGER platform_zone_notify AFTER INSERT OR UPDATE OR DELETE ON platform_zone
  FOR EACH ROW EXECUTE FUNCTION notify_row('berth_zone', 'name');

-- Edges, runners, and builds that wait for their server to answer.
CREATE OR REPLACE TRIGGER instance_notify AFTER INSERT OR UPDATE OR DELETE ON instance
  FOR EACH ROW EXECUTE FUNCTION notify_row('berth_instance', 'deployment_id');

-- The node, which starts or stops draining at once and not only at its next heartbeat.
CREATE OR REPLACE TRIGGER node_notify AFTER UPDATE OF draining ON node FOR EACH ROW
  WHEN (OLD.draining IS DISTINCT FROM NEW.draining) EXECUTE FUNCTION notify_row('berth_node', 'id');

-- Every API process, which must forget the tokens of the person. A session's tokens go with it, without an event.
CREATE OR REPLACE TRIGGER session_notify AFTER DELETE ON session
  FOR EACH ROW EXECUTE FUNCTION notify_row('berth_session', 'user_id');
