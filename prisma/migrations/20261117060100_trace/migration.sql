-- The trace that a job and a delivery belong to, as W3C Trace Context writes it: set only while traces are on.
ALTER TABLE "job" ADD COLUMN "trace" TEXT;
ALTER TABLE "event" ADD COLUMN "trace" TEXT;
