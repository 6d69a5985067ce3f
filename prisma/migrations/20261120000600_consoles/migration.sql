-- CreateEnum
CREATE TYPE "console_kind" AS ENUM ('serial', 'vnc');

-- CreateEnum
CREATE TYPE "console_end" AS ENUM ('ended', 'detached', 'idle', 'taken_over', 'access_lost', 'console_closed', 'console_unreachable', 'console_moved', 'instance_gone', 'instance_not_running', 'lost');

-- CreateTable
CREATE TABLE "console_endpoints" (
    "instance_id" UUID NOT NULL,
    "kind" "console_kind" NOT NULL,
    "host" TEXT,
    "port" INTEGER,
    "socket_path" TEXT,

    CONSTRAINT "console_endpoints_pkey" PRIMARY KEY ("instance_id")
);

-- CreateTable
CREATE TABLE "console_sessions" (
    "id" UUID NOT NULL,
    "project_id" UUID NOT NULL,
    "instance_id" UUID NOT NULL,
    "instance_name" TEXT NOT NULL,
    "user_id" UUID NOT NULL,
    "user_email" TEXT NOT NULL,
    "kind" "console_kind" NOT NULL,
    "client_addresses" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[],
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "ended" TIMESTAMPTZ(3),
    "end_reason" "console_end",
    "bytes_in" BIGINT NOT NULL DEFAULT 0,
    "bytes_out" BIGINT NOT NULL DEFAULT 0,
    "detached_at" TIMESTAMPTZ(3),
    "owner" UUID NOT NULL,
    "seen" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "console_sessions_pkey" PRIMARY KEY ("id")
);

-- Unlogged: what a console has printed is in no write-ahead log and on no standby.
CREATE UNLOGGED TABLE "console_handovers" (
    "session_id" UUID NOT NULL,
    "owner" UUID NOT NULL,
    "position" BIGINT NOT NULL,
    "scrollback" BYTEA NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "console_handovers_pkey" PRIMARY KEY ("session_id","owner")
);

-- CreateIndex
CREATE INDEX "console_sessions_project_id_id_idx" ON "console_sessions"("project_id", "id");

-- CreateIndex
CREATE INDEX "console_sessions_project_id_user_id_id_idx" ON "console_sessions"("project_id", "user_id", "id");

-- CreateIndex
CREATE INDEX "console_sessions_instance_id_id_idx" ON "console_sessions"("instance_id", "id");

-- The running ones: of a user, of an instance, and those whose process has fallen silent.
CREATE INDEX console_sessions_running_user_idx ON console_sessions (user_id) WHERE ended IS NULL;
CREATE INDEX console_sessions_running_instance_idx ON console_sessions (instance_id) WHERE ended IS NULL;
CREATE INDEX console_sessions_running_seen_idx ON console_sessions (seen) WHERE ended IS NULL;

-- One address, whole: the gateway connects to what stands here, and to nothing else.
ALTER TABLE console_endpoints ADD CONSTRAINT console_endpoints_address CHECK (
  (socket_path IS NULL AND coalesce(host, '') <> '' AND coalesce(port, 0) BETWEEN 1 AND 65535)
  OR (coalesce(socket_path, '') LIKE '/%' AND host IS NULL AND port IS NULL)
);
ALTER TABLE console_sessions ADD CONSTRAINT console_sessions_end CHECK ((ended IS NULL) = (end_reason IS NULL));

-- AddForeignKey
ALTER TABLE "console_endpoints" ADD CONSTRAINT "console_endpoints_instance_id_fkey" FOREIGN KEY ("instance_id") REFERENCES "instances"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "console_sessions" ADD CONSTRAINT "console_sessions_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "console_handovers" ADD CONSTRAINT "console_handovers_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "console_sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;
