-- A nameserver that has the signatures of a version of a zone may take them over into the next ones, unless some were
-- renewed or removed meanwhile. Kept by triggers, so that it is right whoever renews them.
ALTER TABLE "domain" ADD COLUMN "signatures_since" INTEGER NOT NULL DEFAULT 0;

-- The first signature of a set takes nobody's place: its "since" is 0.
CREATE FUNCTION "signature_renewed"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE domain d SET signatures_since = NEW.since FROM zone_key k
  WHERE k.id = NEW.key_id AND d.id = k.domain_id AND d.signatures_since < NEW.since;
  RETURN NULL;
END $$;
CREATE TRIGGER "signature_renewed" AFTER INSERT ON "zone_signature" FOR EACH ROW
  WHEN (NEW."since" > 0) EXECUTE FUNCTION "signature_renewed"();

-- What is removed is not in use in the version of that moment. With its key, all signatures of a zone are others.
CREATE FUNCTION "signatures_removed"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE domain d SET signatures_since = d.serial
  FROM (SELECT DISTINCT key_id FROM gone) g JOIN zone_key k ON k.id = g.key_id
  WHERE d.id = k.domain_id AND d.signatures_since < d.serial;
  RETURN NULL;
END $$;
CREATE TRIGGER "signatures_removed" AFTER DELETE ON "zone_signature" REFERENCING OLD TABLE AS "gone"
  FOR EACH STATEMENT EXECUTE FUNCTION "signatures_removed"();
