-- A build that only waits for its server to answer takes no slot: neither of its worker nor of its account. Its job stays held.
ALTER TABLE "job" ADD COLUMN "aside" BOOLEAN NOT NULL DEFAULT false;

-- As before, but what stands aside does not run.
CREATE OR REPLACE VIEW "build_account" AS
  SELECT b.*, COALESCE(t.started_at, '-infinity') AS turn
  FROM (
    SELECT account_id, min(id) AS oldest,
      count(*) FILTER (WHERE locked_until > clock.now AND NOT aside) AS running,
      count(*) FILTER (WHERE run_at <= clock.now AND locked_until IS NULL
        AND (taken_run_at IS NULL OR last_error IS NOT NULL)) AS waiting,
      count(*) FILTER (WHERE run_at <= clock.now AND (locked_until <= clock.now
        OR locked_until IS NULL AND taken_run_at IS NOT NULL AND last_error IS NULL)) AS lost
    FROM job, (SELECT clock_timestamp() AS now) clock
    WHERE kind = 'build' AND failed_at IS NULL GROUP BY account_id) b
  LEFT JOIN build_turn t USING (account_id);

-- As before: what stands aside takes no slot, and who takes it again begins from the start.
CREATE OR REPLACE FUNCTION "take_build"(taker TEXT, lease_ms INTEGER, taker_slots INTEGER) RETURNS SETOF "job" LANGUAGE plpgsql AS $$
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
END
$$;
