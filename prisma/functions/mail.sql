-- Queues `notify` for events that emails may tell of; the worker decides who gets one. Deployments outside production are
-- skipped here, because they are many. Without a mail server, nothing is queued.
CREATE OR REPLACE FUNCTION event_mail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF starts_with(NEW.type, 'deployment.') AND NEW.data ->> 'production' IS DISTINCT FROM 'true' THEN
    RETURN NULL;
  END IF;
  INSERT INTO job (kind, key, payload, account_id, trace)
  SELECT 'notify', NEW.id, jsonb_build_object('eventId', NEW.id), NEW.account_id, NEW.trace
  FROM mail_switch WHERE "on";
  RETURN NULL;
END $$;

-- `mailEvents` has the same types; a test compares them.
CREATE OR REPLACE TRIGGER event_mail AFTER INSERT ON event FOR EACH ROW WHEN (NEW.type IN (
    'deployment.error', 'deployment.ready', 'domain.ssl.expired', 'domain.ssl.failing', 'domain.unverified', 'member.invited',
    'member.joined', 'member.updated', 'session.created', 'ticket.replied', 'token.created', 'webhook.disabled'))
  EXECUTE FUNCTION event_mail();
