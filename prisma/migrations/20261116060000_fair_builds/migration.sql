-- Fair builds: accounts take turns, the queue can be read, and what waits and what ran is counted.

-- When the build began: the last attempt, if its worker was lost. Null while it waits.
ALTER TABLE "deployment" ADD COLUMN "started_at" TIMESTAMPTZ(3);

-- Whose turn a build uses up (empty for other kinds), and whether it goes before the other builds of its account.
ALTER TABLE "job" ADD COLUMN "account_id" TEXT NOT NULL DEFAULT '';
ALTER TABLE "job" ADD COLUMN "urgent" BOOLEAN NOT NULL DEFAULT false;

-- When an account last had a turn. Whoever has no row never had one.
CREATE TABLE "build_turn" (
    "account_id" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "build_turn_pkey" PRIMARY KEY ("account_id")
);
ALTER TABLE "build_turn" ADD CONSTRAINT "build_turn_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- The workers that look for builds, and how many each runs at once.
CREATE TABLE "build_worker" (
    "name" TEXT NOT NULL,
    "slots" INTEGER NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "build_worker_pkey" PRIMARY KEY ("name")
);

-- How long the builds of an account ran in a month (UTC), counted when they end.
CREATE TABLE "build_time" (
    "account_id" TEXT NOT NULL,
    "month" DATE NOT NULL,
    "ms" BIGINT NOT NULL,

    CONSTRAINT "build_time_pkey" PRIMARY KEY ("account_id", "month")
);
ALTER TABLE "build_time" ADD CONSTRAINT "build_time_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- Builds that wait for nobody: their deployment has ended or is gone.
DELETE FROM "job" j WHERE j."kind" = 'build' AND j."failed_at" IS NULL AND j."locked_by" IS NULL
  AND NOT EXISTS (SELECT 1 FROM "deployment" d WHERE d."id" = j."key" AND d."state" = 'BUILDING');
UPDATE "job" j SET "account_id" = d."account_id", "urgent" = d."production"
  FROM "deployment" d WHERE j."kind" = 'build' AND d."id" = j."key";
INSERT INTO "account_usage" ("account_id", "name", "part", "used")
  SELECT "account_id", 'buildsQueued', 0, count(*) FROM "deployment" WHERE "state" = 'BUILDING' GROUP BY "account_id";

-- Jobs of other kinds are found without reading past all builds that wait.
DROP INDEX "job_waiting";
CREATE INDEX "job_waiting" ON "job" ("kind", "run_at") WHERE "failed_at" IS NULL;

-- In the order in which an account's own builds are taken: production first, then by age.
CREATE INDEX "job_build" ON "job" ("account_id", "urgent" DESC, "id") WHERE "kind" = 'build' AND "failed_at" IS NULL;

-- The accounts that have builds: how many run, how many wait, how many lost their worker and wait again; the time of the
-- account's last turn, and its oldest build. clock_timestamp(): whoever waited for the lock of take_build() has an old now().
CREATE VIEW "build_account" AS
  SELECT b.*, COALESCE(t.started_at, '-infinity') AS turn
  FROM (
    SELECT account_id, min(id) AS oldest,
      count(*) FILTER (WHERE locked_until > clock.now) AS running,
      count(*) FILTER (WHERE run_at <= clock.now AND locked_until IS NULL
        AND (taken_run_at IS NULL OR last_error IS NOT NULL)) AS waiting,
      count(*) FILTER (WHERE run_at <= clock.now AND (locked_until <= clock.now
        OR locked_until IS NULL AND taken_run_at IS NOT NULL AND last_error IS NULL)) AS lost
    FROM job, (SELECT clock_timestamp() AS now) clock
    WHERE kind = 'build' AND failed_at IS NULL GROUP BY account_id) b
  LEFT JOIN build_turn t USING (account_id);

-- Leases the next build to a worker. The order:
--   a build that lost its worker, because its account had the turn for it already;
--   then the account that runs the fewest builds;
--   among those, the one whose last turn is the longest ago, or that has waited the longest without any;
--   of its builds production first, then the oldest.
-- An account that runs as many builds as it may is passed over. The last free slot of the platform is kept for accounts that
-- run nothing, where more than one account has built within a week. A worker with a free slot asks every two seconds, so one
-- that did not ask for five has none, or is gone.
-- Takers wait for each other, and each reads the queue after the one before it has committed: otherwise two of them
-- would give one account the same turn twice.
CREATE FUNCTION "take_build"(taker TEXT, lease_ms INTEGER, taker_slots INTEGER) RETURNS SETOF "job" LANGUAGE plpgsql AS $$
DECLARE
  candidate RECORD;
  chosen BIGINT;
  free BIGINT;
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
          WHERE kind = 'build' AND failed_at IS NULL AND locked_until > clock_timestamp() GROUP BY locked_by) r
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
    attempts = attempts + 1, taken_run_at = run_at WHERE id = chosen RETURNING *;
END
$$;

-- Where builds stand in the order of take_build(), if it were called again and again from now on; `position` 1 is next.
-- `place` is the number of a build among those of its account that wait. As no build ends in between, the build number n of
-- an account is taken when that runs `running + n - 1`, and after those of other accounts that run as many and have a lower
-- n or, for the same n, the older turn. So each account has an easily counted number of builds before it. What its account
-- may not run yet (`allowed`, as account_limit() has it) comes after everything that could start.
CREATE FUNCTION "build_places"(deployments TEXT[])
RETURNS TABLE (deployment_id TEXT, "position" BIGINT, place BIGINT, running BIGINT, allowed BIGINT) LANGUAGE sql STABLE AS $$
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
CREATE FUNCTION "build_minutes"(owner TEXT) RETURNS BIGINT LANGUAGE sql STABLE AS $$
  SELECT COALESCE((SELECT ms / 60000 FROM build_time
    WHERE account_id = owner AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date), 0)
$$;

CREATE FUNCTION "count_build_time"(owner TEXT, ran INTERVAL) RETURNS VOID LANGUAGE sql AS $$
  INSERT INTO build_time (account_id, month, ms)
    SELECT id, date_trunc('month', now() AT TIME ZONE 'UTC')::date, GREATEST(0, EXTRACT(epoch FROM ran) * 1000)::bigint
    -- Nothing is counted while the account itself is deleted.
    FROM account WHERE id = owner
  ON CONFLICT (account_id, month) DO UPDATE SET ms = build_time.ms + excluded.ms
$$;

-- The quotas of builds. Counters are locked in the same order everywhere: this one before that of deployments, hence the
-- trigger's name, and before the row is deleted.
CREATE FUNCTION "build_asked"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  allowed BIGINT := account_limit(NEW.account_id, 'buildMinutesPerMonth');
  used BIGINT;
BEGIN
  -- As build_minutes() has it; a call of one more function would be felt at every deployment.
  SELECT ms / 60000 INTO used FROM build_time
  WHERE account_id = NEW.account_id AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date;
  IF COALESCE(used, 0) >= allowed THEN
    PERFORM refuse_quota('buildMinutesPerMonth', COALESCE(used, 0), allowed);
  END IF;
  PERFORM count_usage(NEW.account_id, 'buildsQueued', 1);
  RETURN NULL;
END
$$;
CREATE TRIGGER "deployment_build_asked" AFTER INSERT ON "deployment" FOR EACH ROW
  WHEN (NEW.state = 'BUILDING' AND NEW.started_at IS NULL) EXECUTE FUNCTION build_asked();

-- A build that starts no longer waits. One that ends leaves the queue at once, unless a worker has it: that worker hears of
-- it by an event.
CREATE FUNCTION "build_moved"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  ended TIMESTAMPTZ := CASE TG_OP WHEN 'UPDATE' THEN NEW.finished_at ELSE clock_timestamp() END;
BEGIN
  IF OLD.started_at IS NULL THEN PERFORM count_usage(OLD.account_id, 'buildsQueued', -1); END IF;
  IF TG_OP = 'DELETE' OR NEW.state <> 'BUILDING' THEN
    IF OLD.started_at IS NOT NULL THEN
      PERFORM count_build_time(OLD.account_id, ended - OLD.started_at);
    END IF;
    DELETE FROM job WHERE kind = 'build' AND key = OLD.id AND failed_at IS NULL
      AND (locked_until IS NULL OR locked_until <= clock_timestamp());
  END IF;
  RETURN OLD;
END
$$;
CREATE TRIGGER "deployment_build_moved" AFTER UPDATE ON "deployment" FOR EACH ROW
  WHEN (OLD.state = 'BUILDING' AND (NEW.state <> 'BUILDING' OR OLD.started_at IS NULL AND NEW.started_at IS NOT NULL))
  EXECUTE FUNCTION build_moved();
CREATE TRIGGER "deployment_build_deleted" BEFORE DELETE ON "deployment" FOR EACH ROW
  WHEN (OLD.state = 'BUILDING') EXECUTE FUNCTION build_moved();
