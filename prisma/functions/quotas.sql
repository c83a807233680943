-- Counters and quotas. Whoever writes a row, the trigger counts it and refuses what exceeds the account's quota, so no
-- code path can forget one and two racing requests can't both pass. The API turns SQLSTATE BQ001 into 403 quota_exceeded.
-- Every transaction locks counters in one order: waiting builds, then the account's counters, then the project's.

-- The limit of an account; null if it has none. `withinCeilings` has the same ceilings: a set of records has to fit into
-- one message of 64 KiB, and BIND takes at most 100 records per set. A larger set would stop its zone at the secondaries.
CREATE OR REPLACE FUNCTION account_limit(account text, quota text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT LEAST(COALESCE(
    (SELECT (a.limits ->> quota)::bigint FROM account a WHERE a.id = account),
    (SELECT q.max FROM quota_default q WHERE q.name = quota)),
    CASE quota WHEN 'recordsPerSet' THEN 100 WHEN 'bytesPerSet' THEN 60000 END)
$$;

-- The value of a counter is the sum of its parts.
CREATE OR REPLACE FUNCTION account_used(account text, quota text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT COALESCE(sum(u.used), 0)::bigint FROM account_usage u WHERE u.account_id = account AND u.name = quota
$$;

-- The API reads these three.
CREATE OR REPLACE FUNCTION refuse_quota(quota text, used bigint, allowed bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'quota_exceeded' USING ERRCODE = 'BQ001',
    DETAIL = json_build_object('limit', quota, 'used', used, 'max', allowed)::text;
END $$;

-- Changes a counter, whatever the limit is. A counter has several parts, so that writes of one account don't wait for each
-- other.
CREATE OR REPLACE FUNCTION add_usage(account text, quota text, delta bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO account_usage (account_id, name, part, used) VALUES (account, quota, pg_backend_pid() % 16, delta)
  ON CONFLICT (account_id, name, part) DO UPDATE SET used = account_usage.used + delta
$$;

-- Changes a counter, and refuses to let it grow beyond the limit. Far below the limit nobody waits for anybody. Near it,
-- where running transactions could together exceed it, they take turns, and each counts what the others committed.
CREATE OR REPLACE FUNCTION count_usage(account text, quota text, delta bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  allowed bigint;
  -- More than the number of concurrent transactions.
  margin constant integer := 500;
BEGIN
  PERFORM add_usage(account, quota, delta);
  IF delta <= 0 THEN RETURN; END IF;
  allowed := account_limit(account, quota);
  IF allowed IS NULL OR account_used(account, quota) + margin * delta <= allowed THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('quota ' || account || ' ' || quota, 0));
  IF account_used(account, quota) > allowed THEN
    PERFORM refuse_quota(quota, account_used(account, quota) - delta, allowed);
  END IF;
END $$;

-- For a table whose rows are counted, by the name of the counter. An update says what it adds, and is never refused: a reply
-- may reopen a ticket, whatever the limit is.
CREATE OR REPLACE FUNCTION count_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  CASE TG_OP
    WHEN 'INSERT' THEN PERFORM count_usage(NEW.account_id, TG_ARGV[0], 1);
    WHEN 'DELETE' THEN PERFORM add_usage(OLD.account_id, TG_ARGV[0], -1);
    ELSE PERFORM add_usage(NEW.account_id, TG_ARGV[0], TG_ARGV[1]::bigint);
  END CASE;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER project_count AFTER INSERT OR DELETE ON project
  FOR EACH ROW EXECUTE FUNCTION count_row('projects');
CREATE OR REPLACE TRIGGER domain_count AFTER INSERT OR DELETE ON domain
  FOR EACH ROW EXECUTE FUNCTION count_row('domains');
CREATE OR REPLACE TRIGGER webhook_count AFTER INSERT OR DELETE ON webhook
  FOR EACH ROW EXECUTE FUNCTION count_row('webhooks');
CREATE OR REPLACE TRIGGER dns_key_count AFTER INSERT OR DELETE ON dns_key
  FOR EACH ROW EXECUTE FUNCTION count_row('dnsKeys');

-- Tickets count while they are open.
CREATE OR REPLACE TRIGGER ticket_count AFTER INSERT ON ticket FOR EACH ROW
  WHEN (NEW.status NOT IN ('RESOLVED', 'CLOSED')) EXECUTE FUNCTION count_row('openTickets');
CREATE OR REPLACE TRIGGER ticket_uncount AFTER DELETE ON ticket FOR EACH ROW
  WHEN (OLD.status NOT IN ('RESOLVED', 'CLOSED')) EXECUTE FUNCTION count_row('openTickets');
CREATE OR REPLACE TRIGGER ticket_count_reopened AFTER UPDATE OF status ON ticket FOR EACH ROW
  WHEN (OLD.status IN ('RESOLVED', 'CLOSED') AND NEW.status NOT IN ('RESOLVED', 'CLOSED'))
  EXECUTE FUNCTION count_row('openTickets', '1');
CREATE OR REPLACE TRIGGER ticket_uncount_closed AFTER UPDATE OF status ON ticket FOR EACH ROW
  WHEN (OLD.status NOT IN ('RESOLVED', 'CLOSED') AND NEW.status IN ('RESOLVED', 'CLOSED'))
  EXECUTE FUNCTION count_row('openTickets', '-1');

-- Tokens count until they are revoked. The hidden ones of memberships and consoles never count.
CREATE OR REPLACE TRIGGER token_count AFTER INSERT ON token FOR EACH ROW
  WHEN (NOT NEW.hidden) EXECUTE FUNCTION count_row('tokens');

-- A line of tokens is revoked in one statement and counted once. Counted token by token, each change of the counter read
-- past all earlier ones of its transaction, so a line twice as long took four times as long.
CREATE OR REPLACE FUNCTION uncount_tokens() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    PERFORM add_usage(account_id, 'tokens', -count(*)) FROM was
      WHERE NOT hidden AND revoked_at IS NULL GROUP BY account_id;
  ELSE
    PERFORM add_usage(t.account_id, 'tokens', -count(*)) FROM was JOIN t USING (id)
      WHERE NOT t.hidden AND was.revoked_at IS NULL AND t.revoked_at IS NOT NULL GROUP BY t.account_id;
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER token_uncount AFTER DELETE ON token REFERENCING OLD TABLE AS was
  FOR EACH STATEMENT EXECUTE FUNCTION uncount_tokens();
CREATE OR REPLACE TRIGGER token_uncount_revoked AFTER UPDATE ON token REFERENCING OLD TABLE AS was NEW TABLE AS t
  FOR EACH STATEMENT EXECUTE FUNCTION uncount_tokens();

-- The counters of a project.
CREATE OR REPLACE FUNCTION add_project_usage(project text, more_deployments bigint, more_bytes bigint)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO project_usage AS u (project_id, part, deployments, stored_bytes)
  VALUES (project, pg_backend_pid() % 16, more_deployments, more_bytes)
  ON CONFLICT (project_id, part) DO UPDATE
    SET deployments = u.deployments + more_deployments, stored_bytes = u.stored_bytes + more_bytes
$$;

-- A deployment counts for its account and for its project.
CREATE OR REPLACE FUNCTION count_deployment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM count_usage(NEW.account_id, 'deployments', 1);
    PERFORM add_project_usage(NEW.project_id, 1, NEW.stored_bytes);
  ELSIF NEW.stored_bytes <> OLD.stored_bytes THEN
    PERFORM count_usage(NEW.account_id, 'storedBytes', NEW.stored_bytes - OLD.stored_bytes);
    PERFORM add_project_usage(NEW.project_id, 0, NEW.stored_bytes - OLD.stored_bytes);
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER deployment_count AFTER INSERT OR UPDATE OF stored_bytes ON deployment
  FOR EACH ROW EXECUTE FUNCTION count_deployment();

-- A project takes all its deployments with it: one change of each counter, not one for each of thousands of rows. The
-- counters of the project are gone then.
CREATE OR REPLACE FUNCTION uncount_deployments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_usage(account_id, 'deployments', -count(*)),
      CASE WHEN sum(stored_bytes) <> 0 THEN add_usage(account_id, 'storedBytes', -sum(stored_bytes)::bigint) END
    FROM changed GROUP BY account_id;
  PERFORM add_project_usage(c.project_id, -c.count, -c.bytes) FROM (
    SELECT p.id AS project_id, count(*), sum(d.stored_bytes)::bigint AS bytes
    FROM changed d JOIN project p ON p.id = d.project_id GROUP BY p.id ORDER BY p.id) c;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER deployment_uncount AFTER DELETE ON deployment REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION uncount_deployments();

-- A project's instances count if it has a server, or is going to have one.
CREATE OR REPLACE FUNCTION project_count_instances() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  account text := CASE TG_OP WHEN 'DELETE' THEN OLD.account_id ELSE NEW.account_id END;
  before integer := CASE WHEN TG_OP <> 'INSERT' AND (OLD.framework = 'node' OR OLD.server) THEN OLD.instances ELSE 0 END;
  after integer := CASE WHEN TG_OP <> 'DELETE' AND (NEW.framework = 'node' OR NEW.server) THEN NEW.instances ELSE 0 END;
BEGIN
  IF after <> before THEN PERFORM count_usage(account, 'serverInstances', after - before); END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER project_count_instances
  AFTER INSERT OR DELETE OR UPDATE OF framework, instances, current_deployment_id ON project
  FOR EACH ROW EXECUTE FUNCTION project_count_instances();

-- Records are counted in their zone, whose row every writer of records has locked. Replacing a whole zone deletes before it
-- inserts.
CREATE OR REPLACE FUNCTION count_records() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  zone record;
  allowed bigint;
  used bigint;
BEGIN
  IF TG_OP = 'DELETE' THEN
    UPDATE domain d SET records = d.records - c.count, record_bytes = d.record_bytes - c.bytes
    FROM (SELECT domain_id, count(*), sum(octet_length(name) + octet_length(value)) AS bytes FROM changed
      GROUP BY domain_id) c WHERE d.id = c.domain_id;
    RETURN NULL;
  END IF;
  FOR zone IN
    UPDATE domain d SET records = d.records + c.count, record_bytes = d.record_bytes + c.bytes
    FROM (SELECT domain_id, count(*), sum(octet_length(name) + octet_length(value)) AS bytes FROM changed
      GROUP BY domain_id) c WHERE d.id = c.domain_id
    RETURNING d.account_id, d.records, c.count, d.record_bytes, c.bytes
  LOOP
    allowed := account_limit(zone.account_id, 'recordsPerZone');
    IF zone.records > allowed THEN
      PERFORM refuse_quota('recordsPerZone', zone.records - zone.count, allowed);
    END IF;
    allowed := account_limit(zone.account_id, 'recordBytes');
    -- A hundred zones that have less than a hundredth each are within the limit: most writes add nothing up.
    IF zone.record_bytes * 100 > allowed THEN
      used := (SELECT sum(d.record_bytes) FROM domain d WHERE d.account_id = zone.account_id);
      IF used > allowed THEN
        PERFORM refuse_quota('recordBytes', used - zone.bytes::bigint, allowed);
      END IF;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER dns_record_count AFTER INSERT ON dns_record REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_records();
CREATE OR REPLACE TRIGGER dns_record_uncount AFTER DELETE ON dns_record REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_records();

-- What an account does in a calendar month (UTC). The row stays locked until the transaction ends, so that running
-- transactions count one after the other.
CREATE OR REPLACE FUNCTION count_month_usage(account text, quota text, delta bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  counted bigint;
  allowed bigint := account_limit(account, quota);
BEGIN
  INSERT INTO month_usage AS m (account_id, name, month, used)
    VALUES (account, quota, date_trunc('month', now() AT TIME ZONE 'UTC')::date, delta)
    ON CONFLICT (account_id, name, month) DO UPDATE SET used = m.used + delta RETURNING m.used INTO counted;
  IF counted > allowed THEN PERFORM refuse_quota(quota, counted - delta, allowed); END IF;
END $$;

-- Names claimed for the first time. A claim is kept forever, in a row for each name above it, and takes a pair of
-- nameservers and the right to be served without proof from everybody else. The triggers of the rows have run by then.
CREATE OR REPLACE FUNCTION domain_count_claims() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_month_usage(f.account_id, 'claimsPerMonth', count(DISTINCT f.name)) FROM fresh f JOIN domain_claim c
    ON c.name = f.name AND c.account_id = f.account_id AND c.first_at = now()::timestamptz(3)
    GROUP BY f.account_id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER domain_count_claims AFTER INSERT ON domain REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION domain_count_claims();

-- Messages to support, because tickets are kept forever.
CREATE OR REPLACE FUNCTION ticket_message_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_month_usage(t.account_id, 'messagesPerMonth', count(*)) FROM fresh f JOIN ticket t ON t.id = f.ticket_id
    WHERE f.author = 'customer' GROUP BY t.account_id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER ticket_message_count AFTER INSERT ON ticket_message REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION ticket_message_count();

-- An account's counters go with it, and a project's with it. No foreign key does it, because rows that are deleted with the
-- account are still counted.
CREATE OR REPLACE FUNCTION forget_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_TABLE_NAME = 'account' THEN
    DELETE FROM account_usage WHERE account_id = OLD.id;
  ELSE
    DELETE FROM project_usage WHERE project_id = OLD.id;
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER usage_forget AFTER DELETE ON account FOR EACH ROW EXECUTE FUNCTION forget_usage();
CREATE OR REPLACE TRIGGER project_usage_forget AFTER DELETE ON project FOR EACH ROW EXECUTE FUNCTION forget_usage();
