-- Outside a transaction: indexes are built while the tables are written to.
--
-- Deployments by commit: by the first seven digits, which the API shows.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "deployment_commit"
  ON "deployment" ("account_id", (left("commit", 7)), "state", "production", "id");
-- Tickets by the words of their subject. Without a list of pending entries, which every search would read through.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "ticket_words"
  ON "ticket" USING gin ("ticket_words"("account_id", "status", "priority", "subject")) WITH (fastupdate = off);
