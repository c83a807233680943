-- The branches of projects that were ever deployed, each with the label of its own host.
CREATE TABLE "branch" (
    "project_id" TEXT NOT NULL,
    "ref" TEXT NOT NULL,
    "label" TEXT NOT NULL,
    "closed_at" TIMESTAMPTZ(3),

    CONSTRAINT "branch_pkey" PRIMARY KEY ("project_id", "ref")
);
CREATE UNIQUE INDEX "branch_label_key" ON "branch"("label");
-- Few branches are closed and not cleaned up at any time.
CREATE INDEX "branch_closed" ON "branch"("closed_at") WHERE "closed_at" IS NOT NULL;
ALTER TABLE "branch" ADD CONSTRAINT "branch_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- Each deployment has the label of its branch too: edges and views need no join, and the label never changes.
ALTER TABLE "deployment" ADD COLUMN "branch_label" TEXT;

-- The branch that a label was given to. Like a production label, it stays held for its account, and no project or
-- deployment ever gets it: their triggers refuse a label that is in the table.
ALTER TABLE "label" ADD COLUMN "ref" TEXT;

-- Whoever writes the row: a label that is held for another account, or for anything but this branch, raises a violation
-- of label_pkey.
CREATE FUNCTION "branch_label"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  owner TEXT := (SELECT "account_id" FROM "project" WHERE "id" = NEW."project_id");
BEGIN
  IF NOT EXISTS (SELECT 1 FROM "label" l
      WHERE l."name" = NEW."label" AND l."account_id" = owner AND l."ref" = NEW."ref") THEN
    INSERT INTO "label" ("name", "account_id", "ref") VALUES (NEW."label", owner, NEW."ref");
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER "branch_label" AFTER INSERT ON "branch" FOR EACH ROW EXECUTE FUNCTION "branch_label"();
