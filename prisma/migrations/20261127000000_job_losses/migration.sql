-- How the attempts of a job ended: those that failed, and those that no worker told of because it died or lost the job.
ALTER TABLE "job" ADD COLUMN "failures" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "job" ADD COLUMN "losses" INTEGER NOT NULL DEFAULT 0;
UPDATE "job" SET "failures" = "attempts" WHERE "attempts" > 0 AND "locked_by" IS NULL;
UPDATE "job" SET "failures" = "attempts" - 1 WHERE "attempts" > 0 AND "locked_by" IS NOT NULL;
