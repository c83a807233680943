-- Secondaries of customers, which are told of changes of the zone by a key that transfers it.
ALTER TABLE "dns_key" ADD COLUMN "notify" TEXT[] DEFAULT ARRAY[]::TEXT[];
