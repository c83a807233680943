-- Zones that wait for their first DS are signalled in the platform's own signed zone (RFC 9615), whose serial grows with
-- every change of these signals.
CREATE FUNCTION "raise_signal_serial"() RETURNS void LANGUAGE sql AS $$
  UPDATE "platform_zone" SET "serial" = "serial" + 1 WHERE EXISTS (SELECT 1 FROM "zone_key" WHERE "domain_id" IS NULL)
$$;

CREATE FUNCTION "signal_serial"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM "raise_signal_serial"();
  RETURN NULL;
END $$;
CREATE TRIGGER "signal_serial" AFTER UPDATE OF "dnssec_state", "verified", "nameservers" ON "domain" FOR EACH ROW
  WHEN ('awaiting_ds' IN (OLD."dnssec_state", NEW."dnssec_state")
    AND (OLD."dnssec_state", OLD."verified", OLD."nameservers") IS DISTINCT FROM
      (NEW."dnssec_state", NEW."verified", NEW."nameservers"))
  EXECUTE FUNCTION "signal_serial"();
CREATE TRIGGER "signal_serial_delete" AFTER DELETE ON "domain" FOR EACH ROW
  WHEN (OLD."dnssec_state" = 'awaiting_ds') EXECUTE FUNCTION "signal_serial"();

-- The keys of such a zone may change too.
CREATE OR REPLACE FUNCTION "zone_key_serial"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  zone TEXT := CASE WHEN TG_OP = 'DELETE' THEN OLD."domain_id" ELSE NEW."domain_id" END;
  state TEXT;
BEGIN
  IF zone IS NULL THEN
    UPDATE "platform_zone" SET "serial" = "serial" + 1;
  ELSE
    UPDATE "domain" SET "serial" = "serial" + 1 WHERE "id" = zone RETURNING "dnssec_state" INTO state;
    IF state = 'awaiting_ds' THEN
      PERFORM "raise_signal_serial"();
    END IF;
  END IF;
  RETURN NULL;
END $$;
