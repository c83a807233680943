-- What the parent of a zone shows of its keys (DS records), and when it is asked next.
CREATE TABLE "zone_signing" (
    "domain_id" TEXT NOT NULL,
    "checking_since" TIMESTAMPTZ(3) NOT NULL,
    "checked_at" TIMESTAMPTZ(3),
    "next_check_at" TIMESTAMPTZ(3),
    "parent_ds" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "fault" TEXT,
    "ds_ttl" INTEGER,
    "ds_since" TIMESTAMPTZ(3),
    "gone_since" TIMESTAMPTZ(3),

    CONSTRAINT "zone_signing_pkey" PRIMARY KEY ("domain_id")
);
CREATE INDEX "zone_signing_next_check_at_idx" ON "zone_signing"("next_check_at");
ALTER TABLE "zone_signing" ADD CONSTRAINT "zone_signing_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
