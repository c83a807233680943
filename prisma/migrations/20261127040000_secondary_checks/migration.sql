-- What the secondaries of customers served when they were last asked.
CREATE TABLE "secondary_check" (
    "domain_id" TEXT NOT NULL,
    "secondary" TEXT NOT NULL,
    "serial" BIGINT,
    "error" TEXT,
    "checked_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "secondary_check_pkey" PRIMARY KEY ("domain_id", "secondary")
);
ALTER TABLE "secondary_check" ADD CONSTRAINT "secondary_check_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
