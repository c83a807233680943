-- A production that stays: later deployments become READY, but do not take over until the pin is released.
ALTER TABLE "project" ADD COLUMN "pinned_deployment_id" TEXT;
