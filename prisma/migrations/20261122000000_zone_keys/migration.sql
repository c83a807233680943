-- Keys that sign zones (DNSSEC). A zone is served signed as long as one of its keys signs.
CREATE TABLE "zone_key" (
    "id" TEXT NOT NULL,
    "domain_id" TEXT,
    "tag" INTEGER NOT NULL,
    "public_key" BYTEA NOT NULL,
    "private_key" BYTEA NOT NULL,
    "published" BOOLEAN NOT NULL,
    "signing" BOOLEAN NOT NULL,
    "announced" BOOLEAN NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "zone_key_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "zone_key_domain_id_idx" ON "zone_key"("domain_id");
ALTER TABLE "zone_key" ADD CONSTRAINT "zone_key_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE "domain" ADD COLUMN "dnssec" BOOLEAN;
ALTER TABLE "domain" ADD COLUMN "dnssec_state" TEXT NOT NULL DEFAULT 'unsigned';
ALTER TABLE "domain" ADD COLUMN "dnssec_denial" TEXT NOT NULL DEFAULT 'nsec';
ALTER TABLE "domain" ADD COLUMN "cds_delete" BOOLEAN NOT NULL DEFAULT false;
