-- Streams and waiting requests of an account, shared by all API processes.

-- How many the members other than one hold. A member is there if it was seen within the last five seconds.
CREATE OR REPLACE FUNCTION limit_open_elsewhere(account text, what text, own text) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(held), 0)::integer FROM limit_open o JOIN limit_member m ON m.id = o.member
  WHERE o.account_id = account AND o.kind = what AND o.member <> own AND m.seen_at > now() - interval '5 seconds'
$$;

-- From now on a member holds `wanted`, or as many as are left; it never loses what it already holds. A function and not a
-- statement, because what others hold must be read after waiting for the lock.
CREATE OR REPLACE FUNCTION limit_open_hold(account text, what text, own text, wanted integer, most integer)
RETURNS TABLE (granted integer, elsewhere integer) LANGUAGE plpgsql AS $$
DECLARE
  before integer;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('berth open ' || what || ' ' || account, 0));
  elsewhere := limit_open_elsewhere(account, what, own);
  SELECT o.held INTO before FROM limit_open o WHERE o.account_id = account AND o.kind = what AND o.member = own;
  granted := least(wanted, greatest(most - elsewhere, coalesce(before, 0), 0));
  INSERT INTO limit_open (account_id, kind, member, held) VALUES (account, what, own, granted)
    ON CONFLICT ON CONSTRAINT limit_open_pkey DO UPDATE SET held = excluded.held;
  RETURN NEXT;
END $$;
