-- Nameservers have all keys in memory. A key never changes.
CREATE OR REPLACE FUNCTION notify_dns_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_dns_key', CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER dns_key_notify AFTER INSERT OR DELETE ON dns_key FOR EACH ROW EXECUTE FUNCTION notify_dns_key();
