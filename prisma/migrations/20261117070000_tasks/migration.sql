-- Periodic tasks of the platform: when each is due next, and which process is at it now.
CREATE TABLE "task" (
    "name" TEXT NOT NULL,
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "leased_by" TEXT,
    "leased_until" TIMESTAMPTZ(3),

    CONSTRAINT "task_pkey" PRIMARY KEY ("name")
);
