-- A project that was renamed is still found by its former names.
ALTER TABLE "project" ADD COLUMN "former_names" TEXT[] DEFAULT ARRAY[]::TEXT[];
