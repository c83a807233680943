-- Pull and merge requests, and deployments of forks, which get no variable and never become production.
ALTER TABLE deployment ADD COLUMN untrusted BOOLEAN NOT NULL DEFAULT false;

CREATE FUNCTION deployment_untrusted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the deployment % comes from a fork and cannot be production', NEW.id USING ERRCODE = 'check_violation';
END $$;
-- Whatever takes production over has `production` set by then, or in the same transaction.
CREATE TRIGGER "deployment_untrusted" BEFORE INSERT OR UPDATE OF production, untrusted ON deployment
    FOR EACH ROW WHEN (NEW.untrusted AND NEW.production) EXECUTE FUNCTION deployment_untrusted();

CREATE TABLE pull_request (
    project_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    ref TEXT NOT NULL,
    title TEXT NOT NULL,
    branch TEXT NOT NULL,
    from_fork BOOLEAN NOT NULL,
    commit TEXT NOT NULL,
    state TEXT NOT NULL,
    approved_commit TEXT,
    approved_by TEXT,
    deployment_id TEXT,
    host_updated_at TIMESTAMPTZ(3),
    created_at TIMESTAMPTZ(3) NOT NULL,
    updated_at TIMESTAMPTZ(3) NOT NULL,
    closed_at TIMESTAMPTZ(3),
    CONSTRAINT pull_request_pkey PRIMARY KEY (project_id, number),
    CONSTRAINT pull_request_project_id_fkey FOREIGN KEY (project_id) REFERENCES project (id) ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT pull_request_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES deployment (id) ON DELETE SET NULL ON UPDATE CASCADE
);
CREATE INDEX pull_request_deployment_id_idx ON pull_request (deployment_id);
CREATE INDEX pull_request_state_updated_at_idx ON pull_request (state, updated_at);
