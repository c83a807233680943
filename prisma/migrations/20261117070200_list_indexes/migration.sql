-- Outside a transaction: indexes are built while the tables are written to.
--
-- Lists by filter. A filter with few values that is not asked for is read value by value, so one index serves every
-- combination (src/platform/facets.ts).
CREATE INDEX CONCURRENTLY IF NOT EXISTS "deployment_account_id_state_production_id_idx"
  ON "deployment" ("account_id", "state", "production", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "deployment_project_id_state_production_id_idx"
  ON "deployment" ("project_id", "state", "production", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "deployment_account_id_ref_state_production_id_idx"
  ON "deployment" ("account_id", "ref", "state", "production", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "deployment_project_id_ref_state_production_id_idx"
  ON "deployment" ("project_id", "ref", "state", "production", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "ticket_account_id_status_priority_id_idx"
  ON "ticket" ("account_id", "status", "priority", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "ticket_status_priority_id_idx" ON "ticket" ("status", "priority", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "dns_record_domain_id_type_name_id_idx"
  ON "dns_record" ("domain_id", "type", "name", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "takedown_standing" ON "takedown" ("id") WHERE "ended_at" IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS "takedown_ended" ON "takedown" ("id") WHERE "ended_at" IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS "token_live" ON "token" ("account_id", "id") WHERE "revoked_at" IS NULL;

-- What retention looks for.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "token_ended" ON "token" ((LEAST("revoked_at", "expires_at")))
  WHERE LEAST("revoked_at", "expires_at") IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS "job_failed" ON "job" ("failed_at") WHERE "failed_at" IS NOT NULL;
