-- Suspension of accounts as a whole, and takedowns of single hosts and projects.

ALTER TABLE "account"
  ADD COLUMN "suspension_reason" TEXT,
  ADD COLUMN "refuses_dns" BOOLEAN NOT NULL DEFAULT false;

CREATE TABLE "takedown" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "host" TEXT,
    "hosts" TEXT[],
    "reason" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "takedown_pkey" PRIMARY KEY ("id")
);

ALTER TABLE "takedown" ADD CONSTRAINT "takedown_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- One takedown at a time of a host, and one of a project as a whole, also when two are made at the same moment.
CREATE UNIQUE INDEX "takedown_host" ON "takedown" ("host") WHERE "ended_at" IS NULL AND "host" IS NOT NULL;
CREATE UNIQUE INDEX "takedown_project" ON "takedown" ("project_id") WHERE "ended_at" IS NULL AND "host" IS NULL;
CREATE INDEX "takedown_names" ON "takedown" USING gin ("hosts") WHERE "ended_at" IS NULL;

-- The nameservers hear of every zone of an account whose zones are refused from now on, or answered again.
CREATE FUNCTION "account_zones_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_zone', "name") FROM "domain" WHERE "account_id" = NEW."id";
  RETURN NULL;
END $$;

CREATE TRIGGER "account_zones_notify" AFTER UPDATE OF "refuses_dns" ON "account"
  FOR EACH ROW WHEN (OLD."refuses_dns" IS DISTINCT FROM NEW."refuses_dns") EXECUTE FUNCTION "account_zones_notify"();

-- What an operator does to an account is told to its webhooks even while it is suspended, when all else waits: such a
-- delivery counts as asked for by hand.
CREATE OR REPLACE FUNCTION "event_deliver"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "delivery" ("id", "webhook_id", "event_id", "event_type", "state", "created_at", "next_attempt_at", "xid", "seq",
    "requested")
  SELECT 'dlv_' || substr(NEW."id", 5, 14) || substr(md5(NEW."id" || w."id"), 1, 10), w."id", NEW."id", NEW."type",
    'PENDING', NEW."created_at", NEW."created_at", NEW."xid", NEW."seq",
    NEW."type" IN ('account.suspended', 'takedown.created', 'takedown.ended')
  FROM "webhook" w
  WHERE w."account_id" = NEW."account_id" AND w."active" AND EXISTS (
    SELECT 1 FROM unnest(w."events") AS pattern
    WHERE pattern = '*' OR pattern = NEW."type"
      OR (right(pattern, 2) = '.*' AND starts_with(NEW."type", left(pattern, -1))))
  FOR KEY SHARE OF w;
  RETURN NULL;
END $$;
