-- Outside a transaction: indexes are built while the table is written to.
--
-- Lines of servers, beside the many of builds: for reading them, and for forgetting those of yesterday.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "log_line_run" ON "log_line" ("deployment_id", "seq") WHERE "step" = 'run';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "log_line_run_at" ON "log_line" ("at") WHERE "step" = 'run';
