-- The queue of builds and its quotas. Workers take builds from it, and the API shows it.

-- Leases the next build to a worker. The order:
--   a build that lost its worker, because its account had the turn for it already;
--   then the account that runs the fewest builds;
--   among those, the one whose last turn is the longest ago, or that has waited the longest without any;
--   of its builds production first, then the oldest.
-- An account at its limit is passed over. The platform's last free slot is kept for accounts that run nothing, if more than
-- one account has built within a week. A worker with a free slot asks every two seconds, so one that hasn't asked for five
-- has none, or is gone. A build that stands aside (it only waits for its server to answer) takes no slot, and whoever leases
-- it again starts from the beginning.
-- Takers wait for each other, and each reads the queue after the previous one has committed: otherwise two of them would
-- give one account the same turn twice.
CREATE OR REPLACE FUNCTION take_build(taker text, lease_ms integer, taker_slots integer) RETURNS SETOF job LANGUAGE plpgsql AS $$
DECLARE
  candidate record;
  chosen bigint;
  free bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('take_build', 0));
  INSERT INTO build_worker AS w (name, slots, seen_at) VALUES (taker, taker_slots, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET slots = excluded.slots, seen_at = excluded.seen_at
    WHERE w.seen_at < excluded.seen_at - interval '1 second';
  DELETE FROM build_worker WHERE seen_at < clock_timestamp() - interval '1 hour';
  FOR candidate IN
    SELECT account_id, running FROM build_account WHERE waiting + lost > 0 ORDER BY lost = 0, running, turn, oldest
  LOOP
    CONTINUE WHEN candidate.running >= account_limit(candidate.account_id, 'buildsAtOnce');
    IF candidate.running > 0 AND EXISTS (SELECT 1 FROM build_turn t
      WHERE t.account_id <> candidate.account_id AND t.started_at > now() - interval '7 days') THEN
      free := COALESCE(free, (
        SELECT sum(GREATEST(0, w.slots - COALESCE(r.builds, 0)))
        FROM build_worker w LEFT JOIN (
          SELECT locked_by, count(*) AS builds FROM job
          WHERE kind = 'build' AND failed_at IS NULL AND locked_until > clock_timestamp() AND NOT aside GROUP BY locked_by) r
          ON r.locked_by = w.name
        WHERE w.seen_at > clock_timestamp() - interval '5 seconds'));
      CONTINUE WHEN free < 2;
    END IF;
    -- What is locked is being canceled at this moment. Waiting for it would make every worker wait.
    SELECT id INTO chosen FROM job
    WHERE kind = 'build' AND failed_at IS NULL AND account_id = candidate.account_id
      AND run_at <= clock_timestamp() AND (locked_until IS NULL OR locked_until <= clock_timestamp())
    ORDER BY locked_until IS NULL AND (taken_run_at IS NULL OR last_error IS NOT NULL), urgent DESC, id
    LIMIT 1 FOR UPDATE SKIP LOCKED;
    EXIT WHEN FOUND;
  END LOOP;
  IF chosen IS NULL THEN RETURN; END IF;
  INSERT INTO build_turn (account_id, started_at) SELECT id, clock_timestamp() FROM account WHERE id = candidate.account_id
    ON CONFLICT (account_id) DO UPDATE SET started_at = excluded.started_at;
  RETURN QUERY UPDATE job SET locked_by = taker, locked_until = clock_timestamp() + lease_ms * interval '1 millisecond',
    attempts = attempts + 1, taken_run_at = run_at, aside = false WHERE id = chosen RETURNING *;
END $$;

-- Where builds stand in the order of take_build(), if it were called over and over from now on; `position` 1 is next.
-- `place` is the number of a build among those of its account that wait. If no build ends meanwhile, an account's build
-- number n is taken when it runs `running + n - 1`, after those of other accounts that run as many and have a lower n or,
-- for the same n, the older turn. So each account has an easily counted number of builds before it. What its account may
-- not run yet (`allowed`, from account_limit()) comes after everything that could start.
CREATE OR REPLACE FUNCTION build_places(deployments text[])
RETURNS TABLE (deployment_id text, "position" bigint, place bigint, running bigint, allowed bigint) LANGUAGE sql STABLE AS $$
  WITH accounts AS MATERIALIZED (
    SELECT b.*, COALESCE((a.limits ->> 'buildsAtOnce')::bigint, q.max) AS allowed,
      -- How many of those that wait could start now.
      LEAST(b.waiting, GREATEST(0, COALESCE((a.limits ->> 'buildsAtOnce')::bigint, q.max) - b.running)) AS startable
    FROM build_account b LEFT JOIN account a ON a.id = b.account_id
      LEFT JOIN quota_default q ON q.name = 'buildsAtOnce'
    WHERE b.waiting + b.lost > 0),
  mine AS (
    SELECT j.key, a.*, (
      SELECT count(*) FROM job o
      WHERE o.kind = 'build' AND o.failed_at IS NULL AND o.account_id = j.account_id AND o.run_at <= now()
        AND o.locked_until IS NULL AND (o.taken_run_at IS NULL OR o.last_error IS NOT NULL)
        AND (NOT o.urgent, o.id) <= (NOT j.urgent, j.id)) AS place
    FROM job j JOIN accounts a ON a.account_id = j.account_id
    WHERE j.kind = 'build' AND j.failed_at IS NULL AND j.key = ANY(deployments) AND j.run_at <= now()
      AND j.locked_until IS NULL AND (j.taken_run_at IS NULL OR j.last_error IS NOT NULL))
  SELECT m.key, (SELECT 1 + sum(o.lost + CASE WHEN m.place <= m.startable THEN LEAST(o.startable, n.before)
        ELSE GREATEST(o.startable, LEAST(o.waiting, n.before)) END) FROM accounts o,
      LATERAL (SELECT m.running + m.place - o.running AS level) l,
      LATERAL (SELECT GREATEST(0, l.level - 1
        + CASE WHEN (l.level, o.turn, o.oldest) < (m.place, m.turn, m.oldest) THEN 1 ELSE 0 END) AS before) n)::bigint,
    m.place, m.running, m.allowed
  FROM mine m
$$;

-- Minutes that the builds of an account ran in this month (UTC).
CREATE OR REPLACE FUNCTION build_minutes(owner text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT COALESCE((SELECT ms / 60000 FROM build_time
    WHERE account_id = owner AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date), 0)
$$;

-- The quotas of builds. Named to run before the trigger that counts deployments, so that counters are always locked in one
-- order.
CREATE OR REPLACE FUNCTION build_asked() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  allowed bigint := account_limit(NEW.account_id, 'buildMinutesPerMonth');
  used bigint;
BEGIN
  -- As build_minutes() has it; a call of one more function would be felt at every deployment.
  SELECT ms / 60000 INTO used FROM build_time
  WHERE account_id = NEW.account_id AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date;
  IF COALESCE(used, 0) >= allowed THEN
    PERFORM refuse_quota('buildMinutesPerMonth', COALESCE(used, 0), allowed);
  END IF;
  PERFORM count_usage(NEW.account_id, 'buildsQueued', 1);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER deployment_build_asked AFTER INSERT ON deployment FOR EACH ROW
  WHEN (NEW.state = 'BUILDING' AND NEW.started_at IS NULL) EXECUTE FUNCTION build_asked();

-- A build that starts no longer waits. One that ends leaves the queue at once, unless a worker has it: that worker learns of
-- it from an event. Before a row is deleted, because its counters are locked after this one.
CREATE OR REPLACE FUNCTION build_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  ended timestamptz := CASE TG_OP WHEN 'UPDATE' THEN NEW.finished_at ELSE clock_timestamp() END;
BEGIN
  IF OLD.started_at IS NULL THEN PERFORM count_usage(OLD.account_id, 'buildsQueued', -1); END IF;
  IF TG_OP = 'DELETE' OR NEW.state <> 'BUILDING' THEN
    IF OLD.started_at IS NOT NULL THEN
      INSERT INTO build_time (account_id, month, ms)
        SELECT id, date_trunc('month', now() AT TIME ZONE 'UTC')::date,
          GREATEST(0, EXTRACT(epoch FROM ended - OLD.started_at) * 1000)::bigint
        -- Nothing is counted while the account itself is deleted.
        FROM account WHERE id = OLD.account_id
        ON CONFLICT (account_id, month) DO UPDATE SET ms = build_time.ms + excluded.ms;
    END IF;
    DELETE FROM job WHERE kind = 'build' AND key = OLD.id AND failed_at IS NULL
      AND (locked_until IS NULL OR locked_until <= clock_timestamp());
  END IF;
  RETURN OLD;
END $$;
CREATE OR REPLACE TRIGGER deployment_build_moved AFTER UPDATE ON deployment FOR EACH ROW
  WHEN (OLD.state = 'BUILDING' AND (NEW.state <> 'BUILDING' OR OLD.started_at IS NULL AND NEW.started_at IS NOT NULL))
  EXECUTE FUNCTION build_moved();
CREATE OR REPLACE TRIGGER deployment_build_deleted BEFORE DELETE ON deployment FOR EACH ROW
  WHEN (OLD.state = 'BUILDING') EXECUTE FUNCTION build_moved();
