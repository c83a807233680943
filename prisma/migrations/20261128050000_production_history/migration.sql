-- What served production of a project from when to when, and why. A row without an end is what serves it now.
CREATE TABLE "production" (
    "id" BIGSERIAL NOT NULL,
    "project_id" TEXT NOT NULL,
    "deployment_id" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "actor" TEXT,
    "since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "served_at" TIMESTAMPTZ(3),
    "until" TIMESTAMPTZ(3),
    "before_id" BIGINT,

    CONSTRAINT "production_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "production_project_id_id_idx" ON "production"("project_id", "id");
ALTER TABLE "production" ADD CONSTRAINT "production_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
CREATE UNIQUE INDEX "production_now" ON "production"("project_id") WHERE "until" IS NULL;
CREATE INDEX "production_switching" ON "production"("id") WHERE "until" IS NULL AND "served_at" IS NULL;

-- What is known of the time before: when each deployment served production last. It began at the earliest when it was READY.
INSERT INTO "production" ("project_id", "deployment_id", "reason", "since", "served_at", "until")
SELECT "project_id", "id", 'deployment', LEAST("ready_at", "production_until"), LEAST("ready_at", "production_until"), "production_until"
FROM "deployment" d
WHERE "production_until" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "project" p WHERE p."current_deployment_id" = d."id")
ORDER BY "production_until";
INSERT INTO "production" ("project_id", "deployment_id", "reason", "since", "served_at")
SELECT p."id", d."id", 'deployment', from_when, from_when
FROM "project" p JOIN "deployment" d ON d."id" = p."current_deployment_id"
CROSS JOIN LATERAL (
  SELECT GREATEST(d."ready_at", max(b."until")) AS from_when FROM "production" b WHERE b."project_id" = p."id") AS began;
UPDATE "production" p SET "before_id" = (
  SELECT max(b."id") FROM "production" b WHERE b."project_id" = p."project_id" AND b."id" < p."id");

-- A process with the role edge. It is waited for while its lease lasts.
CREATE UNLOGGED TABLE "edge" (
    "id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "leased_until" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "edge_pkey" PRIMARY KEY ("id")
);

-- The edges that have sent production to a deployment already, until all of them have. There is no foreign key: a restore empties
-- the other table, and not this one, which is of the moment.
CREATE UNLOGGED TABLE "edge_switch" (
    "production_id" BIGINT NOT NULL,
    "edge_id" TEXT NOT NULL,

    CONSTRAINT "edge_switch_pkey" PRIMARY KEY ("production_id", "edge_id")
);
