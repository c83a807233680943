-- Claims to names, kept forever: ownership proofs and the choice of nameservers rely on them.

-- The name and those above it, the shortest first; a top-level domain is nobody's. In plpgsql because an SQL function that
-- can't be inlined takes ten times as long.
CREATE OR REPLACE FUNCTION names_at_and_above(host text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  names text[] := ARRAY[host];
  rest text := substr(host, strpos(host, '.') + 1);
BEGIN
  WHILE strpos(rest, '.') > 0 LOOP
    names := rest || names;
    rest := substr(rest, strpos(rest, '.') + 1);
  END LOOP;
  RETURN names;
END $$;

-- One transaction at a time for the claims to a name. Those to names below it run side by side. Every transaction takes the
-- shortest name first, so two can't wait for each other.
CREATE OR REPLACE FUNCTION lock_claims(host text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  names text[] := names_at_and_above(host);
BEGIN
  FOR at IN 1 .. cardinality(names) - 1 LOOP
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('domain ' || names[at], 0));
  END LOOP;
  PERFORM pg_advisory_xact_lock(hashtextextended('domain ' || host, 0));
  RETURN true;
END $$;

-- Locks, and tells whether there are as many claims of others at, above and below the name as the caller has read. Rows are
-- never deleted, so the same number means the same rows. Not part of the caller's own statement, which wouldn't see what
-- another transaction committed while it waited for the lock. Name by name, because PostgreSQL plans a condition on a list of
-- unknown length anew each time.
CREATE OR REPLACE FUNCTION lock_claims_if_known(host text, account text, known integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  one text;
  there bigint;
BEGIN
  PERFORM lock_claims(host);
  there := (SELECT count(*) FROM domain_claim_above c WHERE c.above = host AND c.account_id <> account);
  FOREACH one IN ARRAY names_at_and_above(host) LOOP
    there := there + (SELECT count(*) FROM domain_claim c WHERE c.name = one AND c.account_id <> account);
  END LOOP;
  RETURN there = known;
END $$;

-- Remembers a claim, however it was made, and has the nameservers look again at unproved claims of others to names above and
-- below: an unproved claim is served only while nobody else has claimed such a name. A wildcard is part of its host, which
-- the account has already claimed.
CREATE OR REPLACE FUNCTION domain_claim_keep() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  claimed text := CASE WHEN NEW.nameservers[1] COLLATE "C" < NEW.nameservers[2]
    THEN NEW.nameservers[1] || ' ' || NEW.nameservers[2]
    ELSE COALESCE(NEW.nameservers[2] || ' ' || NEW.nameservers[1], '') END;
  names text[];
BEGIN
  IF starts_with(NEW.name, '*') THEN
    RETURN NULL;
  END IF;
  -- A program of the version before knows no pairs; what it claims is remembered without one.
  IF claimed = '' AND EXISTS (
    SELECT 1 FROM domain_claim c WHERE c.name = NEW.name AND c.account_id = NEW.account_id)
  THEN
    RETURN NULL;
  END IF;
  INSERT INTO domain_claim (name, account_id, pair) VALUES (NEW.name, NEW.account_id, claimed)
    ON CONFLICT DO NOTHING;
  names := names_at_and_above(NEW.name);
  FOR at IN 1 .. cardinality(names) - 1 LOOP
    INSERT INTO domain_claim_above (above, name, account_id, pair)
      VALUES (names[at], NEW.name, NEW.account_id, claimed) ON CONFLICT DO NOTHING;
    PERFORM pg_notify('berth_zone', names[at]) FROM domain d
      WHERE d.name = names[at] AND d.account_id <> NEW.account_id AND NOT d.verified;
  END LOOP;
  PERFORM pg_notify('berth_zone', c.name) FROM domain_claim_above c
    WHERE c.above = NEW.name AND c.account_id <> NEW.account_id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER domain_claim_keep AFTER INSERT ON domain FOR EACH ROW EXECUTE FUNCTION domain_claim_keep();

-- Filling in an empty pair is no new claim, and concerns many rows.
CREATE OR REPLACE TRIGGER domain_claim_keep_update AFTER UPDATE OF nameservers ON domain FOR EACH ROW
  WHEN (OLD.nameservers <> NEW.nameservers AND OLD.nameservers <> '{}') EXECUTE FUNCTION domain_claim_keep();
