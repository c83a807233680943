-- Every change is an event, so one notification wakes streams, waiting requests, token caches, running builds, webhooks, and
-- the snapshots of edges and runners.
CREATE OR REPLACE FUNCTION event_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_event', NEW.type || ' ' || NEW.account_id || ' ' || NEW.subject);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER event_notify AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION event_notify();

-- The number of the running transaction, in an order that outlives dump and restore. The first transaction that writes in a
-- new cluster sets what is added, and all others wait for it. It adds 2^32 more than needed: servers that kept running
-- during the restore may have read beyond the last row, up to where no transaction was running anymore.
CREATE OR REPLACE FUNCTION event_xid() RETURNS xid8 LANGUAGE plpgsql AS $$
DECLARE
  number xid8;
BEGIN
  LOOP
    SELECT (pg_current_xact_id()::text::bigint + added)::text::xid8 INTO number
    FROM event_numbering WHERE cluster = (pg_control_system()).system_identifier;
    IF number IS NOT NULL THEN RETURN number; END IF;
    INSERT INTO event_numbering AS n (cluster, added)
    SELECT (pg_control_system()).system_identifier, GREATEST(0, (SELECT added FROM event_numbering),
      (SELECT xid::text::bigint FROM event ORDER BY xid DESC LIMIT 1)
        - pg_snapshot_xmin(pg_current_snapshot())::text::bigint + 4294967296)
    ON CONFLICT (id) DO UPDATE SET cluster = excluded.cluster, added = excluded.added
      WHERE n.cluster <> excluded.cluster;
  END LOOP;
END $$;

-- The default of `event.xid`: the order of events is the one in which they were written, even beside a transaction that
-- began long before it wrote its own. Ordered by transactions alone, the change of a row could come before the change that
-- it built on, made by a transaction that had written something else before.
--
-- The number of an event is that of the last transaction that had ended when it was written, but never lower than that of
-- its own. A transaction that waits for another's lock comes after it, and none can write below its own number: what is
-- below the oldest running one stays final. No number comes twice when PostgreSQL is killed: what had ended before comes
-- before this event in its log, and so is on disk when this one is.
CREATE OR REPLACE FUNCTION event_number() RETURNS xid8 LANGUAGE plpgsql AS $$
DECLARE
  own bigint := event_xid()::text::bigint;
  -- Of now, and not of the statement's start: it may have waited for a lock.
  ended bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1;
BEGIN
  RETURN GREATEST(own, own - pg_current_xact_id()::text::bigint + ended)::text::xid8;
END $$;

-- The first number that a transaction may still write, as of the snapshot whose oldest running transaction is given. Until
-- the first event in a new cluster, it holds nothing but the restored rows, and all of them are final. Readers of the log
-- stop here.
CREATE OR REPLACE FUNCTION event_horizon(oldest xid8) RETURNS xid8 LANGUAGE plpgsql STABLE AS $$
DECLARE
  number xid8;
BEGIN
  SELECT (oldest::text::bigint + added)::text::xid8 INTO number
  FROM event_numbering WHERE cluster = (pg_control_system()).system_identifier;
  IF number IS NULL THEN
    SELECT (xid::text::bigint + 1)::text::xid8 INTO number FROM event ORDER BY xid DESC LIMIT 1;
  END IF;
  RETURN COALESCE(number, oldest);
END $$;

-- The events of one type, project or subject of an account, after an id. Planned at each call for its values: a plan for any
-- value can't know that this one is rare, and reads through all events of the account for it. For lists of events.
CREATE OR REPLACE FUNCTION event_ids(account text, facet text, value text, types text[], projects text[],
  after text, direction text, most integer)
RETURNS SETOF text LANGUAGE plpgsql STABLE ROWS 20 AS $$
BEGIN
  RETURN QUERY EXECUTE format(
    'SELECT id FROM event WHERE account_id = $1 AND %I = $2 AND id %s $3
       AND ($4 IS NULL OR type = ANY($4)) AND ($5 IS NULL OR project_id = ANY($5)) ORDER BY id %s LIMIT $6',
    facet, CASE direction WHEN 'asc' THEN '>' ELSE '<' END, CASE direction WHEN 'asc' THEN 'ASC' ELSE 'DESC' END)
  USING account, value, after, types, projects, most;
END $$;

-- Comes before every id of an event made at this time (UTC) or later, and after all that were made before.
CREATE OR REPLACE FUNCTION event_id_at(at timestamp) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT 'evt_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> 5 * n) % 32)::int + 1, 1), '' ORDER BY n DESC)
  FROM (SELECT floor(extract(epoch FROM at) * 1000)::bigint AS ms) t, generate_series(0, 9) n
$$;

-- For the two functions that create and drop tables.
CREATE OR REPLACE FUNCTION event_month_name(month timestamp) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT to_char(month, '"event_"YYYYMM')
$$;

-- The tables of the log in order, each with the next one.
CREATE OR REPLACE FUNCTION event_months() RETURNS TABLE (name text, next text) LANGUAGE sql STABLE AS $$
  SELECT name, lead(name) OVER (ORDER BY name)
  FROM (SELECT c.relname::text COLLATE "C" AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = '"event"'::regclass) m
$$;

-- Creates tables for all months up to the one after next, and returns how many. The last table gets an upper bound and a new
-- one follows it, which works however late it is done. Gives up after a second, because others would wait while it waits for
-- a long transaction. `keepEventMonths` calls both functions.
CREATE OR REPLACE FUNCTION make_event_months(at timestamptz) RETURNS integer LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  this timestamp := date_trunc('month', at AT TIME ZONE 'UTC');
  old text;
  lower timestamp;
  upper timestamp;
  made integer := 0;
BEGIN
  -- One at a time.
  LOCK TABLE ONLY event IN SHARE UPDATE EXCLUSIVE MODE;
  LOOP
    SELECT name, to_date(substr(name, 7), 'YYYYMM') INTO old, lower FROM event_months() WHERE next IS NULL;
    IF lower > this + interval '1 month' THEN RETURN made; END IF;
    upper := GREATEST(lower, this) + interval '1 month';
    EXECUTE format('ALTER TABLE "event" DETACH PARTITION %I', old);
    EXECUTE format('CREATE TABLE %I (LIKE "event" INCLUDING DEFAULTS INCLUDING INDEXES)', event_month_name(upper));
    -- Ids beyond it were made by a clock that is wrong.
    EXECUTE format('WITH beyond AS (DELETE FROM %I WHERE "id" >= %L RETURNING *) INSERT INTO %I SELECT * FROM beyond', old,
      event_id_at(upper), event_month_name(upper));
    EXECUTE format('ALTER TABLE "event" ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', old, event_id_at(lower),
      event_id_at(upper));
    EXECUTE format('ALTER TABLE "event" ATTACH PARTITION %I FOR VALUES FROM (%L) TO (MAXVALUE)', event_month_name(upper),
      event_id_at(upper));
    made := made + 1;
  END LOOP;
END $$;

-- Drops the tables whose months are all older than the last `kept` ones, and returns how many. A new first table takes their
-- place, for ids of any time.
CREATE OR REPLACE FUNCTION drop_event_months(at timestamptz, kept integer) RETURNS integer LANGUAGE plpgsql
SET lock_timeout = '1s' AS $$
DECLARE
  first text := event_month_name(date_trunc('month', at AT TIME ZONE 'UTC') - kept * interval '1 month');
  old text;
  upper text;
  dropped integer := 0;
BEGIN
  LOCK TABLE ONLY event IN SHARE UPDATE EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT 1 FROM event_months() WHERE next <= first COLLATE "C" AND name <> 'event_000000')
    AND NOT EXISTS (SELECT 1 FROM event_000000) THEN RETURN 0; END IF;
  SELECT max(next) INTO upper FROM event_months() WHERE next <= first COLLATE "C";
  FOR old IN SELECT name FROM event_months() WHERE next <= upper LOOP
    EXECUTE format('DROP TABLE %I', old);
    dropped := dropped + 1;
  END LOOP;
  IF dropped > 0 THEN
    EXECUTE format('CREATE TABLE "event_000000" PARTITION OF "event" FOR VALUES FROM (MINVALUE) TO (%L)',
      event_id_at(to_date(substr(upper, 7), 'YYYYMM')));
  END IF;
  RETURN dropped;
END $$;
