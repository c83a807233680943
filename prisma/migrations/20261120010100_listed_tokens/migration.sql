-- Outside a transaction: indexes are built while the tables are written to.
--
-- A page of the tokens of an account, however many consoles have been open since; in place of the one without `hidden`.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "token_account_id_hidden_id_idx" ON "token" ("account_id", "hidden", "id");
DROP INDEX CONCURRENTLY IF EXISTS "token_account_id_id_idx";
