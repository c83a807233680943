-- Pushes that change nothing under these paths make no deployment; empty: every push makes one.
ALTER TABLE "project" ADD COLUMN "watch_paths" TEXT[] DEFAULT ARRAY[]::TEXT[];
-- The last push that made none for that reason.
ALTER TABLE "push_hook" ADD COLUMN "last_skip" JSONB;
-- A push that was skipped is kept, too: what comes after it is compared with the same deployment.
ALTER TABLE "push" ALTER COLUMN "deployment_id" DROP NOT NULL;
ALTER TABLE "push" ADD COLUMN "ref" TEXT, ADD COLUMN "commit" TEXT;
