-- Whoever terminates TLS hears which name has another certificate; the platform's own are told by their first name.
CREATE OR REPLACE FUNCTION domain_certificate_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_certificate', COALESCE(NEW.name, OLD.name));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER domain_certificate_notify AFTER UPDATE OF certificate_id, verified ON domain
  FOR EACH ROW EXECUTE FUNCTION domain_certificate_notify();
CREATE OR REPLACE TRIGGER domain_certificate_notify_delete AFTER DELETE ON domain
  FOR EACH ROW WHEN (OLD.certificate_id IS NOT NULL) EXECUTE FUNCTION domain_certificate_notify();

CREATE OR REPLACE FUNCTION certificate_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_certificate', COALESCE(NEW.names[1], OLD.names[1]));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER certificate_notify AFTER INSERT OR UPDATE ON certificate
  FOR EACH ROW WHEN (NEW.account_id IS NULL) EXECUTE FUNCTION certificate_notify();
CREATE OR REPLACE TRIGGER certificate_notify_delete AFTER DELETE ON certificate
  FOR EACH ROW WHEN (OLD.account_id IS NULL) EXECUTE FUNCTION certificate_notify();

-- Every edge may get the authority's request.
CREATE OR REPLACE FUNCTION acme_challenge_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_challenge', COALESCE(NEW.token, OLD.token));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER acme_challenge_notify AFTER INSERT OR UPDATE OR DELETE ON acme_challenge
  FOR EACH ROW EXECUTE FUNCTION acme_challenge_notify();
