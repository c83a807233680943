-- Outside a transaction: indexes are built while the table is written to.
--
-- The zones that wait for their first DS, among all domains.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "domain_awaiting_ds" ON "domain" ("id") WHERE "dnssec_state" = 'awaiting_ds';
