-- Changes are noted in zones from 1 KiB on, instead of 16: a signed zone of a hundred records is worth being read and
-- signed by the names that changed.
CREATE OR REPLACE FUNCTION "note_zone_change"("zone" TEXT, "changed" TEXT[]) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
  written INTEGER;
  since INTEGER;
  bytes BIGINT;
BEGIN
  SELECT d."serial", d."changes_since", d."record_bytes" INTO written, since, bytes FROM "domain" d
    WHERE d."id" = "zone" FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF bytes < 1024 THEN
    IF since IS NOT NULL THEN
      UPDATE "domain" SET "changes_since" = NULL WHERE "id" = "zone";
      DELETE FROM "zone_change" WHERE "domain_id" = "zone";
    END IF;
    RETURN;
  END IF;
  INSERT INTO "zone_change" AS z ("domain_id", "serial", "names") VALUES ("zone", written, "changed")
    ON CONFLICT ("domain_id", "serial") DO UPDATE SET "names" = CASE
      WHEN z."names" = '{}' OR EXCLUDED."names" = '{}' OR cardinality(z."names") + cardinality(EXCLUDED."names") > 1000
        THEN '{}' ELSE z."names" || EXCLUDED."names" END;
  -- What the same transaction changed before may not be noted, so this serial is not complete yet.
  IF since IS NULL THEN
    UPDATE "domain" SET "changes_since" = written + 1 WHERE "id" = "zone";
  ELSIF written - since > 2000 THEN
    UPDATE "domain" SET "changes_since" = written - 1000 WHERE "id" = "zone";
    DELETE FROM "zone_change" WHERE "domain_id" = "zone" AND "serial" < written - 1000;
  END IF;
END $$;
