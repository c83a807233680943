-- The processes of the installation. Each writes its own row every few seconds, and again if it is gone: so it is not worth
-- a place in the write-ahead log, nor in backups.
CREATE UNLOGGED TABLE "node" (
    "id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "roles" TEXT[],
    "version" TEXT NOT NULL,
    "address" TEXT,
    "load" JSONB NOT NULL,
    "draining" BOOLEAN NOT NULL DEFAULT false,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "heartbeat_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "node_pkey" PRIMARY KEY ("id")
);

-- The node hears of it at once, and not only at its next heartbeat.
CREATE FUNCTION "notify_node"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_node', NEW."id");
  RETURN NULL;
END
$$;
CREATE TRIGGER "node_notify" AFTER UPDATE OF "draining" ON "node" FOR EACH ROW
  WHEN (OLD."draining" IS DISTINCT FROM NEW."draining") EXECUTE FUNCTION notify_node();
