-- The instances of servers that the projects of an account ask for, within a quota: each has its memory for as long as it runs.
-- Nobody changes a project until those that are there are counted.
LOCK TABLE "project" IN SHARE ROW EXCLUSIVE MODE;

CREATE FUNCTION "project_count_instances"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  account TEXT := CASE TG_OP WHEN 'DELETE' THEN OLD.account_id ELSE NEW.account_id END;
  before INTEGER := CASE WHEN TG_OP <> 'INSERT' AND OLD.framework = 'node' THEN OLD.instances ELSE 0 END;
  after INTEGER := CASE WHEN TG_OP <> 'DELETE' AND NEW.framework = 'node' THEN NEW.instances ELSE 0 END;
BEGIN
  IF after <> before THEN PERFORM count_usage(account, 'serverInstances', after - before); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "project_count_instances" AFTER INSERT OR DELETE OR UPDATE OF "framework", "instances" ON "project"
  FOR EACH ROW EXECUTE FUNCTION "project_count_instances"();

INSERT INTO "account_usage" ("account_id", "name", "part", "used")
  SELECT "account_id", 'serverInstances', 0, sum("instances") FROM "project" WHERE "framework" = 'node' GROUP BY "account_id";
