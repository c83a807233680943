-- What a project uses, kept in parts as account_usage is: GET /account with a token that is narrowed to projects shows it.
-- The triggers come first. They lock the table against writes, not against reads, until the counters are filled, which takes
-- one pass over the table.

CREATE TABLE "project_usage" (
  "project_id" TEXT NOT NULL,
  "part" SMALLINT NOT NULL,
  "deployments" BIGINT NOT NULL,
  "stored_bytes" BIGINT NOT NULL,

  CONSTRAINT "project_usage_pkey" PRIMARY KEY ("project_id", "part")
);
ALTER TABLE "project_usage" SET (fillfactor = 50);

CREATE FUNCTION add_project_usage(project TEXT, more_deployments BIGINT, more_bytes BIGINT) RETURNS VOID LANGUAGE sql AS $$
  INSERT INTO project_usage AS u (project_id, part, deployments, stored_bytes)
  VALUES (project, pg_backend_pid() % 16, more_deployments, more_bytes)
  ON CONFLICT (project_id, part) DO UPDATE
    SET deployments = u.deployments + more_deployments, stored_bytes = u.stored_bytes + more_bytes
$$;

CREATE FUNCTION count_in_project() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_project_usage(NEW.project_id, 1, NEW.stored_bytes);
  RETURN NULL;
END
$$;
-- The name puts it after that of the account's counter, which is locked first everywhere.
CREATE TRIGGER "deployment_count_project" AFTER INSERT ON "deployment" FOR EACH ROW EXECUTE FUNCTION count_in_project();

CREATE OR REPLACE FUNCTION count_stored_bytes() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_usage(NEW.account_id, 'storedBytes', NEW.stored_bytes - OLD.stored_bytes);
  PERFORM add_project_usage(NEW.project_id, 0, NEW.stored_bytes - OLD.stored_bytes);
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION uncount_deployments() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  gone RECORD;
BEGIN
  FOR gone IN SELECT account_id, count(*) AS count, sum(stored_bytes)::bigint AS bytes FROM changed GROUP BY account_id LOOP
    PERFORM count_usage(gone.account_id, 'deployments', -gone.count);
    IF gone.bytes <> 0 THEN PERFORM count_usage(gone.account_id, 'storedBytes', -gone.bytes); END IF;
  END LOOP;
  -- Not those of a project that is deleted itself: its counters are gone.
  FOR gone IN SELECT p.id AS project_id, count(*) AS count, sum(c.stored_bytes)::bigint AS bytes
    FROM changed c JOIN project p ON p.id = c.project_id GROUP BY p.id ORDER BY p.id LOOP
    PERFORM add_project_usage(gone.project_id, -gone.count, -gone.bytes);
  END LOOP;
  RETURN NULL;
END
$$;

-- The counters of a project go with it.
CREATE FUNCTION forget_project_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM project_usage WHERE project_id = OLD.id;
  RETURN NULL;
END
$$;
CREATE TRIGGER "project_usage_forget" AFTER DELETE ON "project" FOR EACH ROW EXECUTE FUNCTION forget_project_usage();

INSERT INTO project_usage (project_id, part, deployments, stored_bytes)
  SELECT project_id, 0, count(*), sum(stored_bytes)::bigint FROM deployment GROUP BY project_id;
