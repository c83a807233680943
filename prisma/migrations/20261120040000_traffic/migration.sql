-- What visitors asked for, by project, host and minute or hour (UTC). Every process adds what it counted, so a row is the sum
-- of all edges. s1 to s5 are answers by class of status; d0 to d15 how many of them began within 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
-- 25, 50, 100, 250, 500, 1000, 2500, 10000 ms and later.
CREATE TABLE "traffic" (
    "project_id" TEXT NOT NULL,
    "step" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "host" TEXT NOT NULL,
    "bytes" BIGINT NOT NULL,
    "duration_us" BIGINT NOT NULL,
    "s1" BIGINT NOT NULL,
    "s2" BIGINT NOT NULL,
    "s3" BIGINT NOT NULL,
    "s4" BIGINT NOT NULL,
    "s5" BIGINT NOT NULL,
    "d0" BIGINT NOT NULL,
    "d1" BIGINT NOT NULL,
    "d2" BIGINT NOT NULL,
    "d3" BIGINT NOT NULL,
    "d4" BIGINT NOT NULL,
    "d5" BIGINT NOT NULL,
    "d6" BIGINT NOT NULL,
    "d7" BIGINT NOT NULL,
    "d8" BIGINT NOT NULL,
    "d9" BIGINT NOT NULL,
    "d10" BIGINT NOT NULL,
    "d11" BIGINT NOT NULL,
    "d12" BIGINT NOT NULL,
    "d13" BIGINT NOT NULL,
    "d14" BIGINT NOT NULL,
    "d15" BIGINT NOT NULL,

    CONSTRAINT "traffic_pkey" PRIMARY KEY ("project_id", "step", "at", "host")
);
ALTER TABLE "traffic" ADD CONSTRAINT "traffic_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
CREATE INDEX "traffic_step_at_idx" ON "traffic"("step", "at");
-- Room for the hour's row to be changed in place each minute.
ALTER TABLE "traffic" SET (fillfactor = 75);

-- What resolvers asked for, by zone and minute or hour (UTC): questions by type, and the same ones by the code of the answer.
CREATE TABLE "dns_traffic" (
    "domain_id" TEXT NOT NULL,
    "step" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "type_a" BIGINT NOT NULL,
    "type_aaaa" BIGINT NOT NULL,
    "type_cname" BIGINT NOT NULL,
    "type_ns" BIGINT NOT NULL,
    "type_soa" BIGINT NOT NULL,
    "type_mx" BIGINT NOT NULL,
    "type_txt" BIGINT NOT NULL,
    "type_caa" BIGINT NOT NULL,
    "type_srv" BIGINT NOT NULL,
    "type_https" BIGINT NOT NULL,
    "type_svcb" BIGINT NOT NULL,
    "type_ds" BIGINT NOT NULL,
    "type_tlsa" BIGINT NOT NULL,
    "type_any" BIGINT NOT NULL,
    "type_other" BIGINT NOT NULL,
    "rcode_noerror" BIGINT NOT NULL,
    "rcode_nxdomain" BIGINT NOT NULL,
    "rcode_servfail" BIGINT NOT NULL,
    "rcode_other" BIGINT NOT NULL,

    CONSTRAINT "dns_traffic_pkey" PRIMARY KEY ("domain_id", "step", "at")
);
ALTER TABLE "dns_traffic" ADD CONSTRAINT "dns_traffic_domain_id_fkey" FOREIGN KEY ("domain_id") REFERENCES "domain"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
CREATE INDEX "dns_traffic_step_at_idx" ON "dns_traffic"("step", "at");
ALTER TABLE "dns_traffic" SET (fillfactor = 75);

-- The last part that each process has added: one whose answer was lost is sent again, and must not count twice.
CREATE TABLE "traffic_source" (
    "id" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "traffic_source_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "traffic_source_at_idx" ON "traffic_source"("at");

-- The most that an account stored in this month, which a task of the worker goes on with.
INSERT INTO "month_usage" ("account_id", "name", "month", "used")
  SELECT a."id", 'storedBytes', date_trunc('month', now() AT TIME ZONE 'UTC')::date, sum(u."used")
  FROM "account_usage" u JOIN "account" a ON a."id" = u."account_id" WHERE u."name" = 'storedBytes' GROUP BY a."id"
  ON CONFLICT ("account_id", "name", "month") DO NOTHING;
