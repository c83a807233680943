-- Keys by which standard clients sign updates and transfers of one zone (TSIG, RFC 8945), within a quota of the account.
CREATE TABLE "dns_key" (
  "id" TEXT NOT NULL PRIMARY KEY,
  "account_id" TEXT NOT NULL,
  "domain_id" TEXT NOT NULL REFERENCES "domain" ("id") ON DELETE CASCADE ON UPDATE CASCADE,
  "name" TEXT NOT NULL,
  "purpose" TEXT NOT NULL,
  "names" TEXT[],
  "types" TEXT[],
  "secret" BYTEA NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL,
  "last_used_at" TIMESTAMPTZ(3)
);
CREATE UNIQUE INDEX "dns_key_domain_id_name_key" ON "dns_key" ("domain_id", "name");
CREATE INDEX "dns_key_domain_id_id_idx" ON "dns_key" ("domain_id", "id");

CREATE TRIGGER "dns_key_count" AFTER INSERT ON "dns_key" FOR EACH ROW EXECUTE FUNCTION count_row('dnsKeys', '1');
CREATE TRIGGER "dns_key_uncount" AFTER DELETE ON "dns_key" FOR EACH ROW EXECUTE FUNCTION count_row('dnsKeys', '-1');

-- Nameservers have all keys in memory. A key never changes.
CREATE FUNCTION notify_dns_key() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_dns_key', CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
  RETURN NULL;
END
$$;
CREATE TRIGGER "dns_key_notify" AFTER INSERT OR DELETE ON "dns_key" FOR EACH ROW EXECUTE FUNCTION notify_dns_key();

-- Updates that were answered, each by the signature of its request, for as long as that is accepted: one that comes
-- again is answered again, by whichever nameserver, and not done again.
CREATE TABLE "dns_update" (
  "key_id" TEXT NOT NULL REFERENCES "dns_key" ("id") ON DELETE CASCADE ON UPDATE CASCADE,
  "mac" BYTEA NOT NULL,
  "rcode" INTEGER NOT NULL,
  "expires_at" TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY ("key_id", "mac")
);
CREATE INDEX "dns_update_expires_at_idx" ON "dns_update" ("expires_at");
