-- Since when the proof of a domain is looked for, which sets how often it is, and when a miss was last counted, so that
-- a day with many checks is one miss and not many.

ALTER TABLE "domain" ADD COLUMN "checking_since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
ADD COLUMN "missed_at" TIMESTAMPTZ(3);

-- A job that waits for later and is wanted sooner wakes the workers as a new one does.
CREATE TRIGGER "job_notify_sooner" AFTER UPDATE OF "run_at" ON "job" FOR EACH ROW
  WHEN (NEW."run_at" < OLD."run_at" AND NEW."locked_by" IS NULL AND NEW."failed_at" IS NULL)
  EXECUTE FUNCTION "job_notify"();
