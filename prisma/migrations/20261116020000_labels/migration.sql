-- Every label that was ever given out. Rows are never deleted, not even with their account: whoever follows an old link
-- must not arrive at somebody else's site.
CREATE TABLE "label" (
    "name" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "project_name" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "label_pkey" PRIMARY KEY ("name")
);

-- Of production labels alone: those of deployments are only ever looked up by name.
CREATE INDEX "label_production" ON "label" ("account_id", "project_name") WHERE "project_name" IS NOT NULL;

INSERT INTO "label" ("name", "account_id", "project_name", "created_at")
  SELECT "label", "account_id", "name", "created_at" FROM "project";
INSERT INTO "label" ("name", "account_id", "created_at")
  SELECT "label", "account_id", "created_at" FROM "deployment" ON CONFLICT DO NOTHING;

-- Labels of what was deleted stand in the events; the last holder of each keeps it.
INSERT INTO "label" ("name", "account_id", "project_name", "created_at")
  SELECT DISTINCT ON (e."label") e."label", e."account_id", e."project_name", e."created_at" FROM (
    SELECT split_part(split_part("data"->>'productionUrl', '://', 2), '.', 1) AS "label", "account_id",
      "data"->>'name' AS "project_name", "created_at", "seq" FROM "event" WHERE "type" = 'project.created') e
  WHERE e."label" ~ '^[a-z0-9-]+$' AND e."project_name" IS NOT NULL ORDER BY e."label", e."seq" DESC
  ON CONFLICT DO NOTHING;
INSERT INTO "label" ("name", "account_id", "created_at")
  SELECT DISTINCT ON (e."label") e."label", e."account_id", e."created_at" FROM (
    SELECT split_part(split_part("data"->>'url', '://', 2), '.', 1) AS "label", "account_id", "created_at", "seq"
    FROM "event" WHERE "type" = 'deployment.created') e
  WHERE e."label" ~ '^[a-z0-9-]+$' ORDER BY e."label", e."seq" DESC
  ON CONFLICT DO NOTHING;

-- Whoever writes the row, and however two of them race: a label that is held for another account, or was ever a
-- deployment's, raises a violation of label_pkey.
CREATE FUNCTION "project_label"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM "label" l WHERE l."name" = NEW."label" AND l."account_id" = NEW."account_id"
      AND l."project_name" IS NOT NULL) THEN
    INSERT INTO "label" ("name", "account_id", "project_name") VALUES (NEW."label", NEW."account_id", NEW."name");
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER "project_label" AFTER INSERT ON "project" FOR EACH ROW EXECUTE FUNCTION "project_label"();

CREATE FUNCTION "deployment_label"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "label" ("name", "account_id") VALUES (NEW."label", NEW."account_id");
  RETURN NULL;
END $$;

CREATE TRIGGER "deployment_label" AFTER INSERT ON "deployment" FOR EACH ROW EXECUTE FUNCTION "deployment_label"();
