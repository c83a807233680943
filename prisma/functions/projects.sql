-- When a deployment left production: retention counts from there.
CREATE OR REPLACE FUNCTION left_production() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE deployment SET production_until = now() WHERE id = OLD.current_deployment_id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER project_left_production AFTER UPDATE OF current_deployment_id ON project FOR EACH ROW
  WHEN (OLD.current_deployment_id IS DISTINCT FROM NEW.current_deployment_id AND OLD.current_deployment_id IS NOT NULL)
  EXECUTE FUNCTION left_production();

-- Whether production runs a server: the edge and the counter of instances rely on it.
CREATE OR REPLACE FUNCTION project_note_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- A worker of the version before this one notes no command.
  NEW.server := EXISTS (
    SELECT 1 FROM deployment d WHERE d.id = NEW.current_deployment_id
      AND (d.start_command IS NOT NULL OR (NEW.framework = 'node' AND d.files IS NULL)));
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER project_note_server BEFORE INSERT OR UPDATE OF current_deployment_id, framework ON project
  FOR EACH ROW EXECUTE FUNCTION project_note_server();
