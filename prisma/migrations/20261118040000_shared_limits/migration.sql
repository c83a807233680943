-- Limits that all API processes of an installation share. Unlogged: what is here is of the last minute, and a crash of
-- the database may forget it.

-- The processes that share the limits; one that was not seen for some seconds is gone.
CREATE UNLOGGED TABLE "limit_member" (
    "id" TEXT NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "limit_member_pkey" PRIMARY KEY ("id")
);

-- A minute of a key, such as a token: what it has, what processes have taken of it, used
-- or not, and what the last one was given.
CREATE UNLOGGED TABLE "limit_window" (
    "key" TEXT NOT NULL,
    "ends_at" TIMESTAMPTZ(3) NOT NULL,
    "budget" INTEGER NOT NULL,
    "taken" BIGINT NOT NULL,
    "granted" INTEGER NOT NULL,

    CONSTRAINT "limit_window_pkey" PRIMARY KEY ("key")
) WITH (fillfactor = 50);

-- Waits and streams of an account that are open at a process, or that it may open.
CREATE UNLOGGED TABLE "limit_open" (
    "account_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "member" TEXT NOT NULL,
    "held" INTEGER NOT NULL,

    CONSTRAINT "limit_open_pkey" PRIMARY KEY ("account_id", "kind", "member")
) WITH (fillfactor = 50);

CREATE INDEX "limit_open_member_idx" ON "limit_open"("member");

-- How many the members other than one hold. The time is the one by which all members are told to be there.
CREATE FUNCTION limit_open_elsewhere(account text, what text, own text) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(held), 0)::integer FROM limit_open o JOIN limit_member m ON m.id = o.member
  WHERE o.account_id = account AND o.kind = what AND o.member <> own AND m.seen_at > now() - interval '5 seconds'
$$;

-- A member holds so many from now on, or as many as there are left; less than it holds already is always its own.
-- A function and not a statement, because what others hold must be read after the lock was waited for.
CREATE FUNCTION limit_open_hold(account text, what text, own text, wanted integer, most integer)
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
END
$$;
