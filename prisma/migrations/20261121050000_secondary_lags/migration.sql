-- Secondaries that do not serve a zone as it is here, while that lasts.
CREATE TABLE "secondary_lag" (
    "domain_id" TEXT NOT NULL,
    "secondary" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "since" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "secondary_lag_pkey" PRIMARY KEY ("domain_id", "secondary")
);
ALTER TABLE "secondary_lag" ADD CONSTRAINT "secondary_lag_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
