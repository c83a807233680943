-- A deleted zone leaves its records, and a deleted key its signatures, to a job that deletes them in batches: with ON DELETE
-- CASCADE one transaction deleted 50,000 records in 1.8 s, and everybody who changed the account waited for it. What is left
-- belongs to nobody: records are found by their domain, and signatures by their key. So there are no foreign keys. These
-- triggers refuse, as those did, what belongs to no domain and no key; and once for each statement instead of for each row.
ALTER TABLE "dns_record" DROP CONSTRAINT "dns_record_domain_id_fkey";
ALTER TABLE "zone_signature" DROP CONSTRAINT "zone_signature_key_id_fkey";

CREATE FUNCTION "dns_record_domain"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM "domain" WHERE "id" = ANY (ARRAY(SELECT DISTINCT "domain_id" FROM "fresh")) ORDER BY "id" FOR KEY SHARE;
  IF EXISTS (SELECT 1 FROM (SELECT DISTINCT "domain_id" FROM "fresh") f
    WHERE NOT EXISTS (SELECT 1 FROM "domain" d WHERE d."id" = f."domain_id")) THEN
    RAISE EXCEPTION 'dns_record_domain' USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'dns_record_domain';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "dns_record_domain" AFTER INSERT ON "dns_record" REFERENCING NEW TABLE AS "fresh"
  FOR EACH STATEMENT EXECUTE FUNCTION "dns_record_domain"();

CREATE FUNCTION "zone_signature_key"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM "zone_key" WHERE "id" = ANY (ARRAY(SELECT DISTINCT "key_id" FROM "fresh")) ORDER BY "id" FOR KEY SHARE;
  IF EXISTS (SELECT 1 FROM (SELECT DISTINCT "key_id" FROM "fresh") f
    WHERE NOT EXISTS (SELECT 1 FROM "zone_key" k WHERE k."id" = f."key_id")) THEN
    RAISE EXCEPTION 'zone_signature_key' USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'zone_signature_key';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "zone_signature_key" AFTER INSERT ON "zone_signature" REFERENCING NEW TABLE AS "fresh"
  FOR EACH STATEMENT EXECUTE FUNCTION "zone_signature_key"();

-- Deletes at most this many rows of a domain or a key that is gone, and returns how many.
CREATE FUNCTION "purge_zone"("owner" TEXT, "most" INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
  records INTEGER;
  signatures INTEGER;
BEGIN
  IF EXISTS (SELECT 1 FROM "domain" WHERE "id" = "owner") OR EXISTS (SELECT 1 FROM "zone_key" WHERE "id" = "owner") THEN
    RETURN 0;
  END IF;
  DELETE FROM "dns_record" WHERE "id" = ANY (ARRAY(
    SELECT r."id" FROM "dns_record" r WHERE r."domain_id" = "owner" LIMIT "most"));
  GET DIAGNOSTICS records = ROW_COUNT;
  DELETE FROM "zone_signature" WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM "zone_signature" s WHERE s."key_id" = "owner" LIMIT "most" - records));
  GET DIAGNOSTICS signatures = ROW_COUNT;
  RETURN records + signatures;
END $$;

-- Most zones are small: they take their records along, and need no job.
CREATE FUNCTION "zone_purge"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  most CONSTANT INTEGER := 1000;
BEGIN
  IF "purge_zone"(OLD."id", most) = most THEN
    INSERT INTO "job" ("kind", "key", "payload") VALUES ('purge', OLD."id", jsonb_build_object('ownerId', OLD."id"))
      ON CONFLICT ("kind", "key") WHERE "failed_at" IS NULL DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "zone_purge" AFTER DELETE ON "domain" FOR EACH ROW EXECUTE FUNCTION "zone_purge"();
CREATE TRIGGER "zone_purge" AFTER DELETE ON "zone_key" FOR EACH ROW EXECUTE FUNCTION "zone_purge"();

-- As before, and not for a zone that is gone.
CREATE OR REPLACE FUNCTION "queue_alias"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "job" ("kind", "key", "payload")
  SELECT 'alias', c."domain_id", jsonb_build_object('domainId', c."domain_id")
  FROM (SELECT DISTINCT "domain_id" FROM "changed" WHERE TG_OP = 'DELETE' OR "type" IN ('ALIAS', 'CNAME', 'DNAME', 'NS')) c
  JOIN "domain" d ON d."id" = c."domain_id"
  WHERE EXISTS (SELECT 1 FROM "dns_record" r WHERE r."domain_id" = c."domain_id" AND r."type" = 'ALIAS')
    OR EXISTS (SELECT 1 FROM "alias_answer" a WHERE a."domain_id" = c."domain_id")
  ORDER BY 2
  ON CONFLICT ("kind", "key") WHERE "failed_at" IS NULL
  DO UPDATE SET "run_at" = CASE WHEN "job"."locked_by" IS NOT NULL AND "job"."run_at" = "job"."taken_run_at"
    THEN excluded."run_at" ELSE LEAST("job"."run_at", excluded."run_at") END;
  RETURN NULL;
END $$;
