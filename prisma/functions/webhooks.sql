-- Every event that a webhook subscribes to becomes a delivery. The database does it, so that no writer of events can forget
-- it and no crash can come between the two. The webhook is locked against deletion first; otherwise one deleted at the same
-- moment would fail the change by its foreign key. The id sorts like the event's. Webhooks hear what an operator does to
-- their account even while it is suspended, when all else waits: such a delivery counts as requested by hand.
CREATE OR REPLACE FUNCTION event_deliver() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO delivery (id, webhook_id, event_id, event_type, state, created_at, next_attempt_at, xid, seq,
    requested)
  SELECT 'dlv_' || substr(NEW.id, 5, 14) || substr(md5(NEW.id || w.id), 1, 10), w.id, NEW.id, NEW.type,
    'PENDING', NEW.created_at, NEW.created_at, NEW.xid, NEW.seq,
    NEW.type IN ('account.suspended', 'takedown.created', 'takedown.ended')
  FROM webhook w
  WHERE w.account_id = NEW.account_id AND w.active AND EXISTS (
    SELECT 1 FROM unnest(w.events) AS pattern
    WHERE pattern = '*' OR pattern = NEW.type
      OR (right(pattern, 2) = '.*' AND starts_with(NEW.type, left(pattern, -1))))
  FOR KEY SHARE OF w;
  RETURN NULL;
END $$;

-- A ping goes to the webhook it is meant for, and to no other.
CREATE OR REPLACE TRIGGER event_deliver AFTER INSERT ON event
  FOR EACH ROW WHEN (NEW.type <> 'webhook.ping') EXECUTE FUNCTION event_deliver();
