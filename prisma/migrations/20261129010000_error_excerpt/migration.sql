-- What a build or server printed when it failed: the line that matters with those around it, and its number in the log.
ALTER TABLE "deployment" ADD COLUMN "error_excerpt" TEXT, ADD COLUMN "error_log_line" INTEGER;
