-- Server projects run on runners: which instance of which deployment runs where.
ALTER TABLE "project" ADD COLUMN "instances" INTEGER NOT NULL DEFAULT 1;

-- A runner holds the lease of its instances as a whole: one row is renewed, however many they are.
CREATE TABLE "runner" (
    "node" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "draining" BOOLEAN NOT NULL DEFAULT false,
    "leased_until" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "runner_pkey" PRIMARY KEY ("node")
);

CREATE TABLE "instance" (
    "deployment_id" TEXT NOT NULL,
    "slot" INTEGER NOT NULL,
    "term" BIGSERIAL NOT NULL,
    "node" TEXT,
    "address" TEXT,
    "state" TEXT NOT NULL DEFAULT 'wanted',
    "reason" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "instance_pkey" PRIMARY KEY ("deployment_id", "slot")
);
CREATE INDEX "instance_node_idx" ON "instance"("node");
ALTER TABLE "instance" ADD CONSTRAINT "instance_deployment_id_fkey" FOREIGN KEY ("deployment_id") REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE FUNCTION "notify_instance"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_instance', COALESCE(NEW."deployment_id", OLD."deployment_id"));
  RETURN NULL;
END
$$;
CREATE TRIGGER "instance_notify" AFTER INSERT OR UPDATE OR DELETE ON "instance"
  FOR EACH ROW EXECUTE FUNCTION notify_instance();

-- The authority whose certificates edges and runners show each other. The newest row signs, all of them are trusted.
CREATE TABLE "internal_ca" (
    "id" TEXT NOT NULL,
    "certificate" TEXT NOT NULL,
    "key" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "internal_ca_pkey" PRIMARY KEY ("id")
);
