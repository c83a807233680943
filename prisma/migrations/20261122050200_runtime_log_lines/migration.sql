-- Which instance of a server printed a line.
ALTER TABLE "log_line" ADD COLUMN "instance" TEXT;
