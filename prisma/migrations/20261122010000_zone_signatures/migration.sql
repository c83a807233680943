-- Signatures of record sets, made once and served by every nameserver. A row never changes but for `renew_at`. A renewed
-- signature is a row of its own, in use from the version `since` of its zone; 0 for the first one of a set.
CREATE TABLE "zone_signature" (
    "key_id" TEXT NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "since" INTEGER NOT NULL,
    "name" BYTEA NOT NULL,
    "type" INTEGER NOT NULL,
    "octets" BYTEA NOT NULL,
    "renew_at" TIMESTAMPTZ(3),

    CONSTRAINT "zone_signature_pkey" PRIMARY KEY ("key_id", "fingerprint", "since")
);
ALTER TABLE "zone_signature" ADD CONSTRAINT "zone_signature_key_id_fkey" FOREIGN KEY ("key_id") REFERENCES "zone_key"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
CREATE INDEX "zone_signature_renew_at_idx" ON "zone_signature"("renew_at") WHERE "renew_at" IS NOT NULL;

-- What a zone serves changes with its keys, so its serial grows with them; zone_notify and platform_zone_notify tell the
-- nameservers.
CREATE FUNCTION "zone_key_serial"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  zone TEXT := CASE WHEN TG_OP = 'DELETE' THEN OLD."domain_id" ELSE NEW."domain_id" END;
BEGIN
  IF zone IS NULL THEN
    UPDATE "platform_zone" SET "serial" = "serial" + 1;
  ELSE
    UPDATE "domain" SET "serial" = "serial" + 1 WHERE "id" = zone;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "zone_key_serial" AFTER INSERT OR DELETE ON "zone_key"
  FOR EACH ROW EXECUTE FUNCTION "zone_key_serial"();
CREATE TRIGGER "zone_key_serial_update" AFTER UPDATE OF "published", "signing", "announced" ON "zone_key" FOR EACH ROW
  WHEN ((OLD."published", OLD."signing", OLD."announced") IS DISTINCT FROM (NEW."published", NEW."signing", NEW."announced"))
  EXECUTE FUNCTION "zone_key_serial"();

CREATE FUNCTION "zone_signing_serial"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "domain" SET "serial" = "serial" + 1 WHERE "id" = NEW."id";
  RETURN NULL;
END $$;
CREATE TRIGGER "zone_signing_serial" AFTER UPDATE OF "dnssec_denial", "cds_delete" ON "domain" FOR EACH ROW
  WHEN ((OLD."dnssec_denial", OLD."cds_delete") IS DISTINCT FROM (NEW."dnssec_denial", NEW."cds_delete"))
  EXECUTE FUNCTION "zone_signing_serial"();
