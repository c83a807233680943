-- Zones that follow a nameserver elsewhere. Their records are what that one has, so nobody else writes them.
CREATE TABLE "zone_primary" (
    "domain_id" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "key_name" TEXT,
    "key_secret" BYTEA,
    "serial" BIGINT,
    "checked_at" TIMESTAMPTZ(3),
    "current_at" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "zone_primary_pkey" PRIMARY KEY ("domain_id")
);
CREATE INDEX "zone_primary_due_at_idx" ON "zone_primary"("due_at");
ALTER TABLE "zone_primary" ADD CONSTRAINT "zone_primary_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- Whoever takes over a version says so in its transaction. The records of a domain that is deleted go with it.
CREATE FUNCTION "dns_record_followed"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM "zone_primary") AND current_setting('berth.follows', true) IS DISTINCT FROM 'on' AND EXISTS (
    SELECT 1 FROM "changed" c JOIN "zone_primary" p ON p."domain_id" = c."domain_id" JOIN "domain" d ON d."id" = c."domain_id")
  THEN
    RAISE EXCEPTION 'zone_follows_primary' USING ERRCODE = 'BQ003';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "dns_record_followed" AFTER INSERT ON "dns_record" REFERENCING NEW TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "dns_record_followed"();
CREATE TRIGGER "dns_record_followed_delete" AFTER DELETE ON "dns_record" REFERENCING OLD TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "dns_record_followed"();
CREATE TRIGGER "dns_record_followed_update" AFTER UPDATE ON "dns_record" REFERENCING NEW TABLE AS "changed"
  FOR EACH STATEMENT EXECUTE FUNCTION "dns_record_followed"();
