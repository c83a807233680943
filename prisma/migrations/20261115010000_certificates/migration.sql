-- Certificates, the orders that lead to them, and what the authority wants to see meanwhile.

ALTER TABLE "project" ADD COLUMN "hsts" BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE "domain" ADD COLUMN "certificate_id" TEXT;

CREATE TABLE "acme_account" (
    "directory" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "key" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "acme_account_pkey" PRIMARY KEY ("directory")
);

CREATE TABLE "certificate" (
    "id" TEXT NOT NULL,
    "account_id" TEXT,
    "names" TEXT[],
    "chain" TEXT NOT NULL,
    "key" BYTEA NOT NULL,
    "issuer" TEXT NOT NULL,
    "serial" TEXT NOT NULL,
    "not_before" TIMESTAMPTZ(3) NOT NULL,
    "not_after" TIMESTAMPTZ(3) NOT NULL,
    "renew_at" TIMESTAMPTZ(3) NOT NULL,
    "directory" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "certificate_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "acme_order" (
    "subject" TEXT NOT NULL,
    "names" TEXT[],
    "directory" TEXT NOT NULL,
    "url" TEXT NOT NULL DEFAULT '',
    "key" BYTEA,
    "leased_by" TEXT,
    "leased_until" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "acme_order_pkey" PRIMARY KEY ("subject")
);

CREATE TABLE "acme_challenge" (
    "id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "zone" TEXT,
    "token" TEXT NOT NULL,
    "value" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "acme_challenge_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "platform_zone" (
    "name" TEXT NOT NULL,
    "serial" INTEGER NOT NULL DEFAULT (EXTRACT(epoch FROM now()))::integer,

    CONSTRAINT "platform_zone_pkey" PRIMARY KEY ("name")
);

CREATE INDEX "domain_certificate_id_idx" ON "domain"("certificate_id");
CREATE INDEX "acme_challenge_subject_idx" ON "acme_challenge"("subject");
CREATE INDEX "acme_challenge_zone_idx" ON "acme_challenge"("zone");

ALTER TABLE "domain" ADD CONSTRAINT "domain_certificate_id_fkey" FOREIGN KEY ("certificate_id") REFERENCES "certificate"("id") ON DELETE SET NULL ON UPDATE CASCADE;
ALTER TABLE "acme_challenge" ADD CONSTRAINT "acme_challenge_subject_fkey" FOREIGN KEY ("subject") REFERENCES "acme_order"("subject") ON DELETE CASCADE ON UPDATE CASCADE;

-- Whoever terminates TLS hears which name has another certificate; the platform's own are told by their first name.
CREATE FUNCTION "domain_certificate_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_certificate', COALESCE(NEW."name", OLD."name"));
  RETURN NULL;
END $$;

CREATE TRIGGER "domain_certificate_notify" AFTER UPDATE OF "certificate_id", "verified" ON "domain"
  FOR EACH ROW EXECUTE FUNCTION "domain_certificate_notify"();
CREATE TRIGGER "domain_certificate_notify_delete" AFTER DELETE ON "domain"
  FOR EACH ROW WHEN (OLD."certificate_id" IS NOT NULL) EXECUTE FUNCTION "domain_certificate_notify"();

CREATE FUNCTION "certificate_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_certificate', COALESCE(NEW."names"[1], OLD."names"[1]));
  RETURN NULL;
END $$;

CREATE TRIGGER "certificate_notify" AFTER INSERT OR UPDATE ON "certificate"
  FOR EACH ROW WHEN (NEW."account_id" IS NULL) EXECUTE FUNCTION "certificate_notify"();
CREATE TRIGGER "certificate_notify_delete" AFTER DELETE ON "certificate"
  FOR EACH ROW WHEN (OLD."account_id" IS NULL) EXECUTE FUNCTION "certificate_notify"();

CREATE FUNCTION "acme_challenge_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_challenge', COALESCE(NEW."token", OLD."token"));
  RETURN NULL;
END $$;

CREATE TRIGGER "acme_challenge_notify" AFTER INSERT OR UPDATE OR DELETE ON "acme_challenge"
  FOR EACH ROW EXECUTE FUNCTION "acme_challenge_notify"();

CREATE FUNCTION "platform_zone_notify"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_zone', COALESCE(NEW."name", OLD."name"));
  RETURN NULL;
END $$;

CREATE TRIGGER "platform_zone_notify" AFTER INSERT OR UPDATE OR DELETE ON "platform_zone"
  FOR EACH ROW EXECUTE FUNCTION "platform_zone_notify"();
