-- The time for which a running job was taken: another one in run_at was asked for meanwhile.
ALTER TABLE "job" ADD COLUMN "taken_run_at" TIMESTAMPTZ(3);
