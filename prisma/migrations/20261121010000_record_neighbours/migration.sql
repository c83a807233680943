-- Outside a transaction: indexes are built while the tables are written to.
--
-- Records that others of the zone must not contradict: what an MX record points at, and what a DNAME record stands for.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "dns_record_mx" ON "dns_record" ("domain_id") WHERE "type" = 'MX';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "dns_record_dname" ON "dns_record" ("domain_id", "name") WHERE "type" = 'DNAME';
