-- A session's tokens go with it, without an event; every API process hears that it must forget those of the person.
CREATE OR REPLACE FUNCTION notify_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_session', OLD.user_id);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER session_notify AFTER DELETE ON session FOR EACH ROW EXECUTE FUNCTION notify_session();
