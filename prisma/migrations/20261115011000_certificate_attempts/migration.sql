-- How often in a row the authority has failed, because the wait grows with it; for the platform's own certificates the
-- same, beside which of them is in service.

ALTER TABLE "domain" ADD COLUMN "certificate_failures" INTEGER NOT NULL DEFAULT 0;

CREATE TABLE "platform_certificate" (
    "purpose" TEXT NOT NULL,
    "certificate_id" TEXT,
    "failures" INTEGER NOT NULL DEFAULT 0,
    "last_error" TEXT,
    "next_attempt_at" TIMESTAMPTZ(3),

    CONSTRAINT "platform_certificate_pkey" PRIMARY KEY ("purpose")
);

ALTER TABLE "platform_certificate" ADD CONSTRAINT "platform_certificate_certificate_id_fkey" FOREIGN KEY ("certificate_id") REFERENCES "certificate"("id") ON DELETE SET NULL ON UPDATE CASCADE;
