-- A label is reserved forever, even after its account is deleted: whoever follows an old link must not arrive at somebody
-- else's site. Whoever writes the row, and however two of them race: a label that another account holds, or that ever
-- belonged to a deployment, violates label_pkey.
CREATE OR REPLACE FUNCTION project_label() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM label l WHERE l.name = NEW.label AND l.account_id = NEW.account_id
      AND l.project_name IS NOT NULL) THEN
    INSERT INTO label (name, account_id, project_name) VALUES (NEW.label, NEW.account_id, NEW.name);
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER project_label AFTER INSERT ON project FOR EACH ROW EXECUTE FUNCTION project_label();

-- A deployment's label is never given out again, not even to the same account.
CREATE OR REPLACE FUNCTION deployment_label() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO label (name, account_id) VALUES (NEW.label, NEW.account_id);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER deployment_label AFTER INSERT ON deployment FOR EACH ROW EXECUTE FUNCTION deployment_label();

-- A branch keeps its label as long as it is the same branch of the same account.
CREATE OR REPLACE FUNCTION branch_label() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  owner text := (SELECT account_id FROM project WHERE id = NEW.project_id);
BEGIN
  IF NOT EXISTS (SELECT 1 FROM label l
      WHERE l.name = NEW.label AND l.account_id = owner AND l.ref = NEW.ref) THEN
    INSERT INTO label (name, account_id, ref) VALUES (NEW.label, owner, NEW.ref);
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER branch_label AFTER INSERT ON branch FOR EACH ROW EXECUTE FUNCTION branch_label();
