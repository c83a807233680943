-- Quotas: the platform's limits, what the operator set for one account, and kept counters of what each account uses.

-- Written from the configuration when the API starts. A quota without a row is not limited.
CREATE TABLE "quota_default" (
  "name" TEXT NOT NULL PRIMARY KEY,
  "max" BIGINT NOT NULL
);

-- What the operator set for this account, by the name of the quota.
ALTER TABLE "account" ADD COLUMN "limits" JSONB NOT NULL DEFAULT '{}';

-- A counter has several parts, so that writes of one account do not wait for each other; its value is their sum.
CREATE TABLE "account_usage" (
  "account_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "part" SMALLINT NOT NULL,
  "used" BIGINT NOT NULL,
  PRIMARY KEY ("account_id", "name", "part")
);
-- Counters change all the time: room in each page keeps the changes off the index.
ALTER TABLE "account_usage" SET (fillfactor = 50);

-- How many records a zone has.
ALTER TABLE "domain" ADD COLUMN "records" INTEGER NOT NULL DEFAULT 0;

-- Bytes of what a deployment serves.
ALTER TABLE "deployment" ADD COLUMN "stored_bytes" BIGINT NOT NULL DEFAULT 0;

-- The limit of an account; null if there is none.
CREATE FUNCTION account_limit(account TEXT, quota TEXT) RETURNS BIGINT LANGUAGE sql STABLE AS $$
  SELECT COALESCE(
    (SELECT (a.limits ->> quota)::bigint FROM account a WHERE a.id = account),
    (SELECT q.max FROM quota_default q WHERE q.name = quota))
$$;

CREATE FUNCTION account_used(account TEXT, quota TEXT) RETURNS BIGINT LANGUAGE sql STABLE AS $$
  SELECT COALESCE(sum(u.used), 0)::bigint FROM account_usage u WHERE u.account_id = account AND u.name = quota
$$;

-- Read by the API, which answers 403 with these three.
CREATE FUNCTION refuse_quota(quota TEXT, used BIGINT, allowed BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'quota_exceeded' USING ERRCODE = 'BQ001',
    DETAIL = json_build_object('limit', quota, 'used', used, 'max', allowed)::text;
END
$$;

-- Changes a counter, whatever the limit is.
CREATE FUNCTION add_usage(account TEXT, quota TEXT, delta BIGINT) RETURNS VOID LANGUAGE sql AS $$
  INSERT INTO account_usage (account_id, name, part, used) VALUES (account, quota, pg_backend_pid() % 16, delta)
  ON CONFLICT (account_id, name, part) DO UPDATE SET used = account_usage.used + delta
$$;

-- Changes a counter, and refuses to let it grow beyond the limit. Far below the limit nobody waits for anybody. Near it,
-- where transactions under way could together exceed it, they take turns, and each counts what the others committed.
CREATE FUNCTION count_usage(account TEXT, quota TEXT, delta BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
  allowed BIGINT;
  -- More than there are transactions under way at one time.
  margin CONSTANT INT := 500;
BEGIN
  PERFORM add_usage(account, quota, delta);
  IF delta <= 0 THEN RETURN; END IF;
  allowed := account_limit(account, quota);
  IF allowed IS NULL OR account_used(account, quota) + margin * delta <= allowed THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('quota ' || account || ' ' || quota, 0));
  IF account_used(account, quota) > allowed THEN
    PERFORM refuse_quota(quota, account_used(account, quota) - delta, allowed);
  END IF;
END
$$;

-- For a table whose rows are counted: the name of the counter, and +1 or -1.
CREATE FUNCTION count_row() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_usage(CASE TG_OP WHEN 'DELETE' THEN OLD.account_id ELSE NEW.account_id END, TG_ARGV[0], TG_ARGV[1]::bigint);
  RETURN NULL;
END
$$;

CREATE TRIGGER "project_count" AFTER INSERT ON "project" FOR EACH ROW EXECUTE FUNCTION count_row('projects', '1');
CREATE TRIGGER "project_uncount" AFTER DELETE ON "project" FOR EACH ROW EXECUTE FUNCTION count_row('projects', '-1');
CREATE TRIGGER "domain_count" AFTER INSERT ON "domain" FOR EACH ROW EXECUTE FUNCTION count_row('domains', '1');
CREATE TRIGGER "domain_uncount" AFTER DELETE ON "domain" FOR EACH ROW EXECUTE FUNCTION count_row('domains', '-1');
CREATE TRIGGER "webhook_count" AFTER INSERT ON "webhook" FOR EACH ROW EXECUTE FUNCTION count_row('webhooks', '1');
CREATE TRIGGER "webhook_uncount" AFTER DELETE ON "webhook" FOR EACH ROW EXECUTE FUNCTION count_row('webhooks', '-1');
CREATE TRIGGER "deployment_count" AFTER INSERT ON "deployment" FOR EACH ROW EXECUTE FUNCTION count_row('deployments', '1');

-- Tokens count until they are revoked.
CREATE TRIGGER "token_count" AFTER INSERT ON "token" FOR EACH ROW EXECUTE FUNCTION count_row('tokens', '1');
CREATE TRIGGER "token_uncount_revoked" AFTER UPDATE OF "revoked_at" ON "token" FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL) EXECUTE FUNCTION count_row('tokens', '-1');
CREATE TRIGGER "token_uncount" AFTER DELETE ON "token" FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL) EXECUTE FUNCTION count_row('tokens', '-1');

-- Tickets count while they are open. A reply may open one again, whatever the limit is.
CREATE FUNCTION count_reopened_ticket() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_usage(NEW.account_id, 'openTickets', 1);
  RETURN NULL;
END
$$;
CREATE TRIGGER "ticket_count" AFTER INSERT ON "ticket" FOR EACH ROW
  WHEN (NEW.status NOT IN ('RESOLVED', 'CLOSED')) EXECUTE FUNCTION count_row('openTickets', '1');
CREATE TRIGGER "ticket_uncount_closed" AFTER UPDATE OF "status" ON "ticket" FOR EACH ROW
  WHEN (OLD.status NOT IN ('RESOLVED', 'CLOSED') AND NEW.status IN ('RESOLVED', 'CLOSED'))
  EXECUTE FUNCTION count_row('openTickets', '-1');
CREATE TRIGGER "ticket_count_reopened" AFTER UPDATE OF "status" ON "ticket" FOR EACH ROW
  WHEN (OLD.status IN ('RESOLVED', 'CLOSED') AND NEW.status NOT IN ('RESOLVED', 'CLOSED'))
  EXECUTE FUNCTION count_reopened_ticket();
CREATE TRIGGER "ticket_uncount" AFTER DELETE ON "ticket" FOR EACH ROW
  WHEN (OLD.status NOT IN ('RESOLVED', 'CLOSED')) EXECUTE FUNCTION count_row('openTickets', '-1');

CREATE FUNCTION count_stored_bytes() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_usage(NEW.account_id, 'storedBytes', NEW.stored_bytes - OLD.stored_bytes);
  RETURN NULL;
END
$$;
CREATE TRIGGER "deployment_count_bytes" AFTER UPDATE OF "stored_bytes" ON "deployment" FOR EACH ROW
  WHEN (OLD.stored_bytes <> NEW.stored_bytes) EXECUTE FUNCTION count_stored_bytes();

-- A project takes all its deployments with it: one change of each counter, not one for each of thousands of rows.
CREATE FUNCTION uncount_deployments() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  gone RECORD;
BEGIN
  FOR gone IN SELECT account_id, count(*) AS count, sum(stored_bytes)::bigint AS bytes FROM changed GROUP BY account_id LOOP
    PERFORM count_usage(gone.account_id, 'deployments', -gone.count);
    IF gone.bytes <> 0 THEN PERFORM count_usage(gone.account_id, 'storedBytes', -gone.bytes); END IF;
  END LOOP;
  RETURN NULL;
END
$$;
CREATE TRIGGER "deployment_uncount" AFTER DELETE ON "deployment" REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION uncount_deployments();

-- Records are counted in their zone, whose row every writer of records has locked. A replacement of a whole zone deletes
-- before it inserts.
CREATE FUNCTION count_records() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  zone RECORD;
  allowed BIGINT;
BEGIN
  IF TG_OP = 'DELETE' THEN
    UPDATE domain d SET records = d.records - c.count
    FROM (SELECT domain_id, count(*) FROM changed GROUP BY domain_id) c WHERE d.id = c.domain_id;
    RETURN NULL;
  END IF;
  FOR zone IN
    UPDATE domain d SET records = d.records + c.count
    FROM (SELECT domain_id, count(*) FROM changed GROUP BY domain_id) c WHERE d.id = c.domain_id
    RETURNING d.account_id, d.records, c.count
  LOOP
    allowed := account_limit(zone.account_id, 'recordsPerZone');
    IF zone.records > allowed THEN
      PERFORM refuse_quota('recordsPerZone', zone.records - zone.count, allowed);
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;
CREATE TRIGGER "dns_record_count" AFTER INSERT ON "dns_record" REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_records();
CREATE TRIGGER "dns_record_uncount" AFTER DELETE ON "dns_record" REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_records();

-- The counters of an account go with it.
CREATE FUNCTION forget_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM account_usage WHERE account_id = OLD.id;
  RETURN NULL;
END
$$;
CREATE TRIGGER "usage_forget" AFTER DELETE ON "account" FOR EACH ROW EXECUTE FUNCTION forget_usage();

-- What is there already.
INSERT INTO account_usage (account_id, name, part, used)
  SELECT account_id, 'projects', 0, count(*) FROM project GROUP BY account_id
  UNION ALL SELECT account_id, 'deployments', 0, count(*) FROM deployment GROUP BY account_id
  UNION ALL SELECT account_id, 'domains', 0, count(*) FROM domain GROUP BY account_id
  UNION ALL SELECT account_id, 'webhooks', 0, count(*) FROM webhook GROUP BY account_id
  UNION ALL SELECT account_id, 'tokens', 0, count(*) FROM token WHERE revoked_at IS NULL GROUP BY account_id
  UNION ALL SELECT account_id, 'openTickets', 0, count(*) FROM ticket
    WHERE status NOT IN ('RESOLVED', 'CLOSED') GROUP BY account_id;
UPDATE domain SET records = (SELECT count(*) FROM dns_record r WHERE r.domain_id = domain.id);
