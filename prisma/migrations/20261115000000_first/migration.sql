-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "public";

-- CreateTable
CREATE TABLE "account" (
    "id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "suspended_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "account_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "token" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "scopes" TEXT[],
    "project_ids" TEXT[],
    "prefix" TEXT NOT NULL,
    "hash" BYTEA NOT NULL,
    "last_used_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "token_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "project" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "framework" TEXT NOT NULL,
    "repo" TEXT NOT NULL,
    "region" TEXT NOT NULL,
    "label" TEXT NOT NULL,
    "production_branch" TEXT NOT NULL,
    "root_directory" TEXT,
    "install_command" TEXT,
    "build_command" TEXT,
    "output_directory" TEXT,
    "spa_fallback" BOOLEAN NOT NULL,
    "clean_urls" BOOLEAN NOT NULL,
    "auto_deploy" BOOLEAN NOT NULL,
    "current_deployment_id" TEXT,
    "newest_production_id" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "project_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "variable" (
    "project_id" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "sealed" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "variable_pkey" PRIMARY KEY ("project_id","key")
);

-- CreateTable
CREATE TABLE "deployment" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "ref" TEXT NOT NULL,
    "commit" TEXT NOT NULL,
    "production" BOOLEAN NOT NULL,
    "label" TEXT NOT NULL,
    "region" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "error_code" TEXT,
    "error_message" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "ready_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "deployment_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "log_line" (
    "deployment_id" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "stream" TEXT NOT NULL,
    "step" TEXT NOT NULL,
    "text" TEXT NOT NULL,

    CONSTRAINT "log_line_pkey" PRIMARY KEY ("deployment_id","seq")
);

-- CreateTable
CREATE TABLE "domain" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "verified" BOOLEAN NOT NULL DEFAULT false,
    "verified_at" TIMESTAMPTZ(3),
    "method" TEXT,
    "txt_value" TEXT NOT NULL,
    "checked_at" TIMESTAMPTZ(3),
    "next_check_at" TIMESTAMPTZ(3),
    "observed_nameservers" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "observed_txt" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "reason" TEXT,
    "misses" INTEGER NOT NULL DEFAULT 0,
    "ssl" TEXT NOT NULL DEFAULT 'PENDING',
    "certificate" JSONB,
    "serial" INTEGER NOT NULL DEFAULT (EXTRACT(epoch FROM now()))::integer,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "domain_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "domain_hold" (
    "name" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "until" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "domain_hold_pkey" PRIMARY KEY ("name")
);

-- CreateTable
CREATE TABLE "dns_record" (
    "id" TEXT NOT NULL,
    "domain_id" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "value" TEXT NOT NULL,
    "ttl" INTEGER NOT NULL,
    "comment" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "dns_record_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "ticket" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "priority" TEXT NOT NULL,
    "related" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "ticket_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "ticket_message" (
    "id" TEXT NOT NULL,
    "ticket_id" TEXT NOT NULL,
    "author" TEXT NOT NULL,
    "message" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "ticket_message_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "events" TEXT[],
    "active" BOOLEAN NOT NULL,
    "secret" BYTEA NOT NULL,
    "old_secret" BYTEA,
    "old_secret_until" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "webhook_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "delivery" (
    "id" TEXT NOT NULL,
    "webhook_id" TEXT NOT NULL,
    "event_id" TEXT NOT NULL,
    "event_type" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "response_status" INTEGER,
    "error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "attempted_at" TIMESTAMPTZ(3),
    "next_attempt_at" TIMESTAMPTZ(3),

    CONSTRAINT "delivery_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "event" (
    "id" TEXT NOT NULL,
    "seq" BIGSERIAL NOT NULL,
    "xid" xid8 NOT NULL DEFAULT pg_current_xact_id(),
    "account_id" TEXT NOT NULL,
    "project_id" TEXT,
    "type" TEXT NOT NULL,
    "actor" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "data" JSON NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "event_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "job" (
    "id" BIGSERIAL NOT NULL,
    "kind" TEXT NOT NULL,
    "key" TEXT,
    "payload" JSONB NOT NULL,
    "run_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "locked_by" TEXT,
    "locked_until" TIMESTAMPTZ(3),
    "last_error" TEXT,
    "failed_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "job_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "idempotency_key" (
    "token_id" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "status" INTEGER NOT NULL,
    "location" TEXT,
    "sealed" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "idempotency_key_pkey" PRIMARY KEY ("token_id","key")
);

-- CreateIndex
CREATE UNIQUE INDEX "account_name_key" ON "account"("name");

-- CreateIndex
CREATE UNIQUE INDEX "token_hash_key" ON "token"("hash");

-- CreateIndex
CREATE INDEX "token_account_id_id_idx" ON "token"("account_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "project_label_key" ON "project"("label");

-- CreateIndex
CREATE UNIQUE INDEX "project_account_id_name_key" ON "project"("account_id", "name");

-- CreateIndex
CREATE UNIQUE INDEX "deployment_label_key" ON "deployment"("label");

-- CreateIndex
CREATE INDEX "deployment_account_id_id_idx" ON "deployment"("account_id", "id");

-- CreateIndex
CREATE INDEX "deployment_project_id_id_idx" ON "deployment"("project_id", "id");

-- CreateIndex
CREATE INDEX "domain_account_id_id_idx" ON "domain"("account_id", "id");

-- CreateIndex
CREATE INDEX "domain_project_id_idx" ON "domain"("project_id");

-- CreateIndex
CREATE INDEX "domain_name_idx" ON "domain"("name");

-- CreateIndex
CREATE UNIQUE INDEX "domain_account_id_name_key" ON "domain"("account_id", "name");

-- CreateIndex
CREATE INDEX "dns_record_domain_id_name_id_idx" ON "dns_record"("domain_id", "name", "id");

-- CreateIndex
CREATE INDEX "ticket_account_id_id_idx" ON "ticket"("account_id", "id");

-- CreateIndex
CREATE INDEX "ticket_message_ticket_id_id_idx" ON "ticket_message"("ticket_id", "id");

-- CreateIndex
CREATE INDEX "webhook_account_id_id_idx" ON "webhook"("account_id", "id");

-- CreateIndex
CREATE INDEX "delivery_webhook_id_id_idx" ON "delivery"("webhook_id", "id");

-- CreateIndex
CREATE INDEX "event_account_id_id_idx" ON "event"("account_id", "id");

-- CreateIndex
CREATE INDEX "event_account_id_subject_id_idx" ON "event"("account_id", "subject", "id");

-- CreateIndex
CREATE INDEX "event_xid_seq_idx" ON "event"("xid", "seq");

-- CreateIndex
CREATE INDEX "idempotency_key_created_at_idx" ON "idempotency_key"("created_at");

-- AddForeignKey
ALTER TABLE "token" ADD CONSTRAINT "token_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project" ADD CONSTRAINT "project_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "variable" ADD CONSTRAINT "variable_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "deployment" ADD CONSTRAINT "deployment_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "log_line" ADD CONSTRAINT "log_line_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "domain" ADD CONSTRAINT "domain_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "domain" ADD CONSTRAINT "domain_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "dns_record" ADD CONSTRAINT "dns_record_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "ticket" ADD CONSTRAINT "ticket_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "ticket_message" ADD CONSTRAINT "ticket_message_ticket_id_fkey" FOREIGN KEY ("ticket_id") REFERENCES "ticket"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook" ADD CONSTRAINT "webhook_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "delivery" ADD CONSTRAINT "delivery_webhook_id_fkey" FOREIGN KEY ("webhook_id") REFERENCES "webhook"("id") ON DELETE CASCADE ON UPDATE CASCADE;


-- What Prisma's schema language cannot say --------------------------------------------------------------------------

-- One account at most has proved that it owns a name.
CREATE UNIQUE INDEX "domain_verified_name" ON "domain" ("name") WHERE "verified";

-- The exact duplicate of a record; a TXT value is too long for an index, its hash is not.
CREATE UNIQUE INDEX "dns_record_duplicate" ON "dns_record" ("domain_id", "name", "type", md5("value"));

-- Only what waits is looked at by workers; failures stay for the operator to read.
CREATE INDEX "job_waiting" ON "job" ("run_at") WHERE "failed_at" IS NULL;
CREATE UNIQUE INDEX "job_key" ON "job" ("kind", "key") WHERE "failed_at" IS NULL;

-- A CNAME stands alone at its name, and so does an ALIAS among addresses. Checked here and not only by the service,
-- because two requests may pass its check at the same time. The zone's row is locked first: a trigger's queries then
-- see what the other transaction committed.
CREATE FUNCTION "dns_record_exclusive"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  other text;
BEGIN
  PERFORM 1 FROM "domain" WHERE "id" = NEW."domain_id" FOR NO KEY UPDATE;
  -- One query per case, so that each is answered by an index: a name may have thousands of records, and an import makes
  -- as many of these checks.
  IF NEW."type" = 'CNAME' THEN
    SELECT r."id" INTO other FROM "dns_record" r
      WHERE r."domain_id" = NEW."domain_id" AND r."name" = NEW."name" AND r."id" <> NEW."id" LIMIT 1;
  ELSIF NEW."type" IN ('ALIAS', 'A', 'AAAA') THEN
    SELECT r."id" INTO other FROM "dns_record" r
      WHERE r."domain_id" = NEW."domain_id" AND r."name" = NEW."name" AND r."type" IN ('CNAME', 'ALIAS')
        AND r."id" <> NEW."id" LIMIT 1;
    IF other IS NULL AND NEW."type" = 'ALIAS' THEN
      SELECT r."id" INTO other FROM "dns_record" r
        WHERE r."domain_id" = NEW."domain_id" AND r."name" = NEW."name" AND r."type" IN ('A', 'AAAA') LIMIT 1;
    END IF;
  ELSE
    SELECT r."id" INTO other FROM "dns_record" r
      WHERE r."domain_id" = NEW."domain_id" AND r."name" = NEW."name" AND r."type" = 'CNAME' LIMIT 1;
  END IF;
  IF other IS NOT NULL THEN
    RAISE EXCEPTION 'dns_record_exclusive' USING ERRCODE = 'exclusion_violation', DETAIL = other;
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER "dns_record_exclusive" BEFORE INSERT OR UPDATE OF "type", "name" ON "dns_record"
  FOR EACH ROW EXECUTE FUNCTION "dns_record_exclusive"();

-- Every change is an event, so one notification wakes streams, waiting requests, token caches and snapshots alike.
CREATE FUNCTION "event_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_event', NEW."type" || ' ' || NEW."account_id" || ' ' || NEW."subject");
  RETURN NULL;
END $$;

CREATE TRIGGER "event_notify" AFTER INSERT ON "event" FOR EACH ROW EXECUTE FUNCTION "event_notify"();

CREATE FUNCTION "job_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_job', NEW."kind");
  RETURN NULL;
END $$;

CREATE TRIGGER "job_notify" AFTER INSERT ON "job" FOR EACH ROW EXECUTE FUNCTION "job_notify"();

-- Lines are written in bulk by one builder, and watched by streams.
CREATE FUNCTION "log_line_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_log', "deployment_id") FROM (SELECT DISTINCT "deployment_id" FROM "fresh") f;
  RETURN NULL;
END $$;

CREATE TRIGGER "log_line_notify" AFTER INSERT ON "log_line" REFERENCING NEW TABLE AS "fresh"
  FOR EACH STATEMENT EXECUTE FUNCTION "log_line_notify"();

-- What the nameservers answer changes with the serial, and with who owns the name.
CREATE FUNCTION "zone_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_zone', CASE WHEN TG_OP = 'DELETE' THEN OLD."name" ELSE NEW."name" END);
  RETURN NULL;
END $$;

CREATE TRIGGER "zone_notify" AFTER INSERT OR DELETE OR UPDATE OF "serial", "verified" ON "domain"
  FOR EACH ROW EXECUTE FUNCTION "zone_notify"();
