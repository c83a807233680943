-- Outside a transaction: indexes are built while the table is written to.
--
-- The filter by type has an index of its own, and the events of a project for tokens that are narrowed to it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "event_account_id_type_id_idx" ON "event" ("account_id", "type", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "event_project" ON "event" ("account_id", "project_id", "id")
  WHERE "project_id" IS NOT NULL;
