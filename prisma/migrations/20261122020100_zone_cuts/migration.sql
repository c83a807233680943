-- A signed zone delegates the zones below it that are served here too; otherwise its proofs would deny what they answer.
-- What it serves changes when such a zone comes, goes, or has other nameservers.
-- Names are found by their index, however small the table was when the plan was made.
CREATE FUNCTION "domain_cut"() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  below TEXT := CASE WHEN TG_OP = 'DELETE' THEN OLD."name" ELSE NEW."name" END;
  zone RECORD;
BEGIN
  IF starts_with(below, '*') OR NOT EXISTS (SELECT 1 FROM "zone_key") THEN
    RETURN NULL;
  END IF;
  FOR zone IN SELECT d."id", left(below, -length(d."name") - 1) AS cut FROM "domain" d
    WHERE d."name" = ANY("names_at_and_above"(below)) AND d."name" <> below
      AND EXISTS (SELECT 1 FROM "zone_key" k WHERE k."domain_id" = d."id") ORDER BY d."id"
  LOOP
    UPDATE "domain" SET "serial" = "serial" + 1 WHERE "id" = zone."id";
    PERFORM "note_zone_change"(zone."id", ARRAY[zone.cut]);
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER "domain_cut" AFTER INSERT OR DELETE ON "domain" FOR EACH ROW EXECUTE FUNCTION "domain_cut"();
CREATE TRIGGER "domain_cut_update" AFTER UPDATE OF "verified", "nameservers", "next_check_at" ON "domain" FOR EACH ROW
  WHEN (OLD."verified" <> NEW."verified" OR OLD."nameservers" <> NEW."nameservers"
    OR (OLD."next_check_at" IS NULL) <> (NEW."next_check_at" IS NULL))
  EXECUTE FUNCTION "domain_cut"();

-- With its first key a zone has these delegations, and without any it has none: a large one is read as a whole then.
CREATE FUNCTION "zone_key_cuts"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM "note_zone_change"(CASE WHEN TG_OP = 'DELETE' THEN OLD."domain_id" ELSE NEW."domain_id" END, '{}');
  RETURN NULL;
END $$;
CREATE TRIGGER "zone_key_cuts" AFTER INSERT OR DELETE ON "zone_key" FOR EACH ROW EXECUTE FUNCTION "zone_key_cuts"();
