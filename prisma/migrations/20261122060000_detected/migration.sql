-- What was found out about the repository of a deployment, and how its server is started; null for files.
ALTER TABLE deployment
  ADD COLUMN detected jsonb,
  ADD COLUMN start_command text;

-- Whether a server serves production, kept by the trigger: what runs follows from the deployment, not from a setting.
ALTER TABLE project ADD COLUMN server boolean NOT NULL DEFAULT false;

-- Nobody changes a project until those that are there are marked.
LOCK TABLE project IN SHARE ROW EXCLUSIVE MODE;

UPDATE deployment d SET start_command = 'npm start'
FROM project p WHERE p.id = d.project_id AND p.framework = 'node' AND d.files IS NULL;

UPDATE project p SET server = true
FROM deployment d WHERE d.id = p.current_deployment_id AND d.start_command IS NOT NULL;

CREATE FUNCTION project_note_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- A worker of the version before this one notes no command.
  NEW.server := EXISTS (
    SELECT 1 FROM deployment d WHERE d.id = NEW.current_deployment_id
      AND (d.start_command IS NOT NULL OR (NEW.framework = 'node' AND d.files IS NULL)));
  RETURN NEW;
END $$;
CREATE TRIGGER project_note_server BEFORE INSERT OR UPDATE OF current_deployment_id, framework ON project
  FOR EACH ROW EXECUTE FUNCTION project_note_server();

-- The instances of a project count if it has a server, or is going to have one.
CREATE OR REPLACE FUNCTION project_count_instances() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  account TEXT := CASE TG_OP WHEN 'DELETE' THEN OLD.account_id ELSE NEW.account_id END;
  before INTEGER := CASE WHEN TG_OP <> 'INSERT' AND (OLD.framework = 'node' OR OLD.server) THEN OLD.instances ELSE 0 END;
  after INTEGER := CASE WHEN TG_OP <> 'DELETE' AND (NEW.framework = 'node' OR NEW.server) THEN NEW.instances ELSE 0 END;
BEGIN
  IF after <> before THEN PERFORM count_usage(account, 'serverInstances', after - before); END IF;
  RETURN NULL;
END $$;
DROP TRIGGER project_count_instances ON project;
CREATE TRIGGER project_count_instances
  AFTER INSERT OR DELETE OR UPDATE OF framework, instances, current_deployment_id ON project
  FOR EACH ROW EXECUTE FUNCTION project_count_instances();
