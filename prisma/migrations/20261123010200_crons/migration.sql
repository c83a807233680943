-- What is called on a schedule: as the owner has set it, in lines of a crontab, and a row for each with when it is due.
ALTER TABLE "project" ADD COLUMN "crons" TEXT[] DEFAULT ARRAY[]::TEXT[];

CREATE TABLE "cron" (
    "id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "schedule" TEXT NOT NULL,
    "next_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "cron_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "cron_project_id_path_schedule_key" ON "cron"("project_id", "path", "schedule");
CREATE INDEX "cron_next_at_idx" ON "cron"("next_at");
ALTER TABLE "cron" ADD CONSTRAINT "cron_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "cron_run" (
    "id" TEXT NOT NULL,
    "cron_id" TEXT NOT NULL,
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "outcome" TEXT NOT NULL,
    "status" INTEGER,
    "duration_ms" INTEGER,
    "error" TEXT,

    CONSTRAINT "cron_run_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "cron_run_cron_id_due_at_key" ON "cron_run"("cron_id", "due_at");
CREATE INDEX "cron_run_cron_id_id_idx" ON "cron_run"("cron_id", "id");
CREATE INDEX "cron_run_outcome_started_at_idx" ON "cron_run"("outcome", "started_at");
ALTER TABLE "cron_run" ADD CONSTRAINT "cron_run_cron_id_fkey" FOREIGN KEY ("cron_id") REFERENCES "cron"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
