-- Whether the owner has said that no unknown path gets index.html. With both false, detection decides. The column that is there
-- keeps its type: the version before this one reads it.
ALTER TABLE "project" ADD COLUMN "spa_never" BOOLEAN NOT NULL DEFAULT false;
