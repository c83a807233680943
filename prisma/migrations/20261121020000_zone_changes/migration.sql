-- Which names of a large zone changed, by serial: a nameserver reads these names again instead of the whole zone. No
-- names stand for all of them. Zones below 16 KiB are read as a whole, so nothing is noted of them.
CREATE TABLE "zone_change" (
    "domain_id" TEXT NOT NULL,
    "serial" INTEGER NOT NULL,
    "names" TEXT[],

    CONSTRAINT "zone_change_pkey" PRIMARY KEY ("domain_id", "serial")
);
ALTER TABLE "zone_change" ADD CONSTRAINT "zone_change_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- Every change that was written at this serial or a later one is noted; null if none is.
ALTER TABLE "domain" ADD COLUMN "changes_since" INTEGER;

-- To be called by whoever changes what is served at these names of a zone, in the transaction that raises the serial,
-- before or after that. The lock makes the order of serials that of commits: what a reader at serial n has not seen is
-- noted at n or later.
CREATE FUNCTION "note_zone_change"("zone" TEXT, "changed" TEXT[]) RETURNS VOID LANGUAGE plpgsql AS $$
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
  IF bytes < 16384 THEN
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

CREATE FUNCTION "dns_record_noted"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    PERFORM "note_zone_change"(c."domain_id", c."names") FROM (
      SELECT b."domain_id", CASE WHEN count(*) > 1000 THEN '{}' ELSE array_agg(DISTINCT b."name") END AS "names"
      FROM (SELECT "domain_id", "name" FROM "changed" UNION ALL SELECT "domain_id", "name" FROM "was") b
      GROUP BY b."domain_id" ORDER BY b."domain_id") c;
  ELSE
    PERFORM "note_zone_change"(c."domain_id", c."names") FROM (
      SELECT b."domain_id", CASE WHEN count(*) > 1000 THEN '{}' ELSE array_agg(DISTINCT b."name") END AS "names"
      FROM "changed" b GROUP BY b."domain_id" ORDER BY b."domain_id") c;
  END IF;
  RETURN NULL;
END $$;

-- After the triggers that count, by their names: the size of the zone is that after the change.
CREATE TRIGGER "dns_record_zone" AFTER INSERT ON "dns_record" REFERENCING NEW TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "dns_record_noted"();
CREATE TRIGGER "dns_record_zone_delete" AFTER DELETE ON "dns_record" REFERENCING OLD TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "dns_record_noted"();
CREATE TRIGGER "dns_record_zone_update" AFTER UPDATE ON "dns_record" REFERENCING OLD TABLE AS "was" NEW TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "dns_record_noted"();
