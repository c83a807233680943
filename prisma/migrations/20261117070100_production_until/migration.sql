-- Until when a deployment served production: what did so lately is kept, because it is what one goes back to.
ALTER TABLE "deployment" ADD COLUMN "production_until" TIMESTAMPTZ(3);

CREATE FUNCTION "left_production"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  UPDATE deployment SET production_until = now() WHERE id = OLD.current_deployment_id;
  RETURN NULL;
END
$$;
CREATE TRIGGER "project_left_production" AFTER UPDATE OF "current_deployment_id" ON "project" FOR EACH ROW
  WHEN (OLD.current_deployment_id IS DISTINCT FROM NEW.current_deployment_id AND OLD.current_deployment_id IS NOT NULL)
  EXECUTE FUNCTION left_production();
