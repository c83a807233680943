-- The addresses of ALIAS records whose targets are outside their zones: looked up by a job, so that a change of them
-- raises the serial of the zone as any other change does.
CREATE TABLE "alias_answer" (
    "domain_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "addresses" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "resolved_at" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "failures" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "alias_answer_pkey" PRIMARY KEY ("domain_id", "name")
);
CREATE INDEX "alias_answer_due_at_idx" ON "alias_answer"("due_at");
ALTER TABLE "alias_answer" ADD CONSTRAINT "alias_answer_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- Queues the job of each zone with an ALIAS in which something has changed that an ALIAS may lead through. A record that
-- is deleted may have stood before a wildcard, whatever its type.
CREATE FUNCTION "queue_alias"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "job" ("kind", "key", "payload")
  SELECT 'alias', c."domain_id", jsonb_build_object('domainId', c."domain_id")
  FROM (SELECT DISTINCT "domain_id" FROM "changed" WHERE TG_OP = 'DELETE' OR "type" IN ('ALIAS', 'CNAME', 'DNAME', 'NS')) c
  WHERE EXISTS (SELECT 1 FROM "dns_record" r WHERE r."domain_id" = c."domain_id" AND r."type" = 'ALIAS')
    OR EXISTS (SELECT 1 FROM "alias_answer" a WHERE a."domain_id" = c."domain_id")
  ORDER BY 2
  ON CONFLICT ("kind", "key") WHERE "failed_at" IS NULL
  DO UPDATE SET "run_at" = CASE WHEN "job"."locked_by" IS NOT NULL AND "job"."run_at" = "job"."taken_run_at"
    THEN excluded."run_at" ELSE LEAST("job"."run_at", excluded."run_at") END;
  RETURN NULL;
END $$;

CREATE TRIGGER "dns_record_alias" AFTER INSERT ON "dns_record" REFERENCING NEW TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "queue_alias"();
CREATE TRIGGER "dns_record_alias_update" AFTER UPDATE ON "dns_record" REFERENCING NEW TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "queue_alias"();
CREATE TRIGGER "dns_record_alias_delete" AFTER DELETE ON "dns_record" REFERENCING OLD TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "queue_alias"();

INSERT INTO "job" ("kind", "key", "payload")
SELECT DISTINCT 'alias', "domain_id", jsonb_build_object('domainId', "domain_id") FROM "dns_record" WHERE "type" = 'ALIAS'
ON CONFLICT DO NOTHING;
