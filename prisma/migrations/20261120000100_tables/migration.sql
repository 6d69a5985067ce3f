-- Identifiers are UUIDv7, so that they sort by creation: from whoever inserts, the gateway or any other service.
CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(
    set_byte(
      overlay(
        uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
        FROM 1 FOR 6
      ),
      6, (get_byte(uuid_send(gen_random_uuid()), 6) & 15) | 112
    ),
    'hex'
  )::uuid
$$;

-- CreateEnum
CREATE TYPE "organization_role" AS ENUM ('owner', 'admin', 'member');

-- CreateEnum
CREATE TYPE "project_role" AS ENUM ('viewer', 'member', 'admin');

-- CreateEnum
CREATE TYPE "ticket_target" AS ENUM ('notifications', 'console');

-- CreateEnum
CREATE TYPE "instance_status" AS ENUM ('provisioning', 'active', 'stopped', 'suspended', 'resizing', 'rebuilding', 'error', 'deleted');

-- CreateEnum
CREATE TYPE "task_status" AS ENUM ('pending', 'running', 'succeeded', 'failed', 'cancelled');

-- CreateEnum
CREATE TYPE "resource_kind" AS ENUM ('volumes', 'vpcs', 'ssh_keys', 'snapshots', 'backups');

-- CreateEnum
CREATE TYPE "severity" AS ENUM ('info', 'warning', 'critical');

-- CreateTable
CREATE TABLE "users" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "email" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "disabled_at" TIMESTAMPTZ(3),

    CONSTRAINT "users_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "organizations" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "name" TEXT NOT NULL,
    "currency" VARCHAR(3) NOT NULL DEFAULT 'EUR',
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "organizations_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "organization_members" (
    "organization_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "role" "organization_role" NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "organization_members_pkey" PRIMARY KEY ("organization_id","user_id")
);

-- CreateTable
CREATE TABLE "projects" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "organization_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "projects_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "project_members" (
    "project_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "role" "project_role" NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "project_members_pkey" PRIMARY KEY ("project_id","user_id")
);

-- CreateTable
CREATE TABLE "api_keys" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "user_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "hint" TEXT NOT NULL,
    "secret_hash" BYTEA NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_used" TIMESTAMPTZ(3),
    "expires" TIMESTAMPTZ(3),
    "revoked" TIMESTAMPTZ(3),

    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "websocket_tickets" (
    "ticket_hash" BYTEA NOT NULL,
    "target" "ticket_target" NOT NULL,
    "project_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "instance_id" UUID,
    "session_id" UUID,
    "created" TIMESTAMPTZ(3) NOT NULL,
    "expires" TIMESTAMPTZ(3) NOT NULL,
    "session_expires" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "websocket_tickets_pkey" PRIMARY KEY ("ticket_hash")
);

-- CreateTable
CREATE TABLE "instances" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "status" "instance_status" NOT NULL,
    "plan" TEXT NOT NULL,
    "region" TEXT NOT NULL,
    "vcpu" INTEGER NOT NULL,
    "ram_mb" INTEGER NOT NULL,
    "storage_gb" INTEGER NOT NULL,
    "hypervisor" TEXT,
    "throttled" BOOLEAN NOT NULL DEFAULT false,
    "daily_backup" BOOLEAN NOT NULL DEFAULT false,
    "cancellation_at" TIMESTAMPTZ(3),
    "billing_service_id" INTEGER,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "modified" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "instances_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "volumes" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "instance_id" UUID,
    "name" TEXT NOT NULL,
    "size_gb" INTEGER NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "volumes_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "snapshots" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "instance_id" UUID,
    "name" TEXT NOT NULL,
    "size_gb" INTEGER NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "snapshots_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "backups" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "instance_id" UUID,
    "name" TEXT NOT NULL,
    "size_gb" INTEGER NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "backups_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "vpcs" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "cidr" TEXT NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "vpcs_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "ssh_keys" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "public_key" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "ssh_keys_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "tasks" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "instance_id" UUID,
    "kind" TEXT NOT NULL,
    "status" "task_status" NOT NULL,
    "error" TEXT NOT NULL DEFAULT '',
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started" TIMESTAMPTZ(3),
    "finished" TIMESTAMPTZ(3),

    CONSTRAINT "tasks_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "instance_counters" (
    "project_id" UUID NOT NULL,
    "status" "instance_status" NOT NULL,
    "slot" SMALLINT NOT NULL,
    "instances" BIGINT NOT NULL,
    "vcpu" BIGINT NOT NULL,
    "ram_mb" BIGINT NOT NULL,
    "storage_gb" BIGINT NOT NULL,
    "without_hypervisor" BIGINT NOT NULL,
    "throttled" BIGINT NOT NULL,

    CONSTRAINT "instance_counters_pkey" PRIMARY KEY ("project_id","status","slot")
);

-- CreateTable
CREATE TABLE "resource_counters" (
    "project_id" UUID NOT NULL,
    "kind" "resource_kind" NOT NULL,
    "slot" SMALLINT NOT NULL,
    "resources" BIGINT NOT NULL,
    "storage_gb" BIGINT NOT NULL,

    CONSTRAINT "resource_counters_pkey" PRIMARY KEY ("project_id","kind","slot")
);

-- CreateTable
CREATE TABLE "billing_clients" (
    "id" INTEGER NOT NULL,
    "organization_id" UUID NOT NULL,
    "name" TEXT NOT NULL,

    CONSTRAINT "billing_clients_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "billing_services" (
    "id" INTEGER NOT NULL,
    "client_id" INTEGER,
    "cycle" TEXT NOT NULL,

    CONSTRAINT "billing_services_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "backup_options" (
    "plan" TEXT NOT NULL,
    "monthly_price" DECIMAL(12,2) NOT NULL,
    "currency" VARCHAR(3) NOT NULL,
    "trial_days" INTEGER NOT NULL,

    CONSTRAINT "backup_options_pkey" PRIMARY KEY ("plan")
);

-- CreateTable
CREATE TABLE "backup_option_prices" (
    "plan" TEXT NOT NULL,
    "cycle" TEXT NOT NULL,
    "price" DECIMAL(12,2) NOT NULL,

    CONSTRAINT "backup_option_prices_pkey" PRIMARY KEY ("plan","cycle")
);

-- CreateTable
CREATE TABLE "backup_trials" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "instance_id" UUID NOT NULL,
    "instance_name" TEXT NOT NULL,
    "legacy_service_id" INTEGER,
    "legacy_order_id" INTEGER,
    "legacy_invoice_id" INTEGER,
    "status" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "trial" BOOLEAN NOT NULL DEFAULT true,
    "cycle" TEXT NOT NULL,
    "monthly_price" DECIMAL(12,2) NOT NULL,
    "cycle_price" DECIMAL(12,2) NOT NULL,
    "credited" DECIMAL(12,2) NOT NULL DEFAULT 0,
    "started_at" TIMESTAMPTZ(3),
    "ends_at" TIMESTAMPTZ(3),
    "reminded_at" TIMESTAMPTZ(3),
    "resolved_at" TIMESTAMPTZ(3),
    "failure_reason" TEXT NOT NULL DEFAULT '',
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "backup_trials_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "dashboards" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "created_by" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT NOT NULL DEFAULT '',
    "widgets" JSON NOT NULL DEFAULT '[]',
    "is_default" BOOLEAN NOT NULL DEFAULT false,
    "is_public" BOOLEAN NOT NULL DEFAULT false,
    "version" INTEGER NOT NULL DEFAULT 1,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "modified" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "dashboards_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "notification_logs" (
    "project_id" UUID NOT NULL,
    "last_sequence" BIGINT NOT NULL DEFAULT 0,
    "pruned_through" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "notification_logs_pkey" PRIMARY KEY ("project_id")
);

-- CreateTable
CREATE TABLE "notifications" (
    "id" UUID NOT NULL DEFAULT uuid_v7(),
    "project_id" UUID NOT NULL,
    "sequence" BIGINT NOT NULL DEFAULT 0,
    "kind" TEXT NOT NULL,
    "severity" "severity" NOT NULL,
    "title" TEXT NOT NULL,
    "body" TEXT NOT NULL DEFAULT '',
    "resource_type" TEXT,
    "resource_id" TEXT,
    "data" JSON NOT NULL DEFAULT '{}',
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "notifications_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "notification_states" (
    "project_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "read_through" BIGINT NOT NULL DEFAULT 0,
    "version" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "notification_states_pkey" PRIMARY KEY ("project_id","user_id")
);

-- CreateTable
CREATE TABLE "notification_reads" (
    "project_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "sequence" BIGINT NOT NULL,
    "version" BIGINT NOT NULL,

    CONSTRAINT "notification_reads_pkey" PRIMARY KEY ("project_id","user_id","sequence")
);

-- CreateIndex
CREATE UNIQUE INDEX "users_email_key" ON "users"("email");

-- CreateIndex
CREATE INDEX "organization_members_user_id_organization_id_idx" ON "organization_members"("user_id", "organization_id");

-- CreateIndex
CREATE UNIQUE INDEX "projects_organization_id_id_key" ON "projects"("organization_id", "id");

-- CreateIndex
CREATE INDEX "project_members_user_id_project_id_idx" ON "project_members"("user_id", "project_id");

-- CreateIndex
CREATE UNIQUE INDEX "api_keys_secret_hash_key" ON "api_keys"("secret_hash");

-- CreateIndex
CREATE INDEX "api_keys_user_id_id_idx" ON "api_keys"("user_id", "id");

-- CreateIndex
CREATE INDEX "websocket_tickets_project_id_idx" ON "websocket_tickets"("project_id");

-- CreateIndex
CREATE INDEX "websocket_tickets_user_id_idx" ON "websocket_tickets"("user_id");

-- CreateIndex
CREATE INDEX "websocket_tickets_expires_idx" ON "websocket_tickets"("expires");

-- CreateIndex
CREATE INDEX "instances_project_id_id_idx" ON "instances"("project_id", "id");

-- CreateIndex
CREATE INDEX "instances_project_id_status_id_idx" ON "instances"("project_id", "status", "id");

-- CreateIndex
CREATE INDEX "instances_billing_service_id_idx" ON "instances"("billing_service_id");

-- CreateIndex
CREATE INDEX "volumes_project_id_idx" ON "volumes"("project_id");

-- CreateIndex
CREATE INDEX "snapshots_project_id_idx" ON "snapshots"("project_id");

-- CreateIndex
CREATE INDEX "backups_project_id_idx" ON "backups"("project_id");

-- CreateIndex
CREATE INDEX "vpcs_project_id_idx" ON "vpcs"("project_id");

-- CreateIndex
CREATE INDEX "ssh_keys_project_id_idx" ON "ssh_keys"("project_id");

-- CreateIndex
CREATE INDEX "tasks_project_id_created_status_idx" ON "tasks"("project_id", "created", "status");

-- CreateIndex
CREATE INDEX "tasks_instance_id_idx" ON "tasks"("instance_id");

-- CreateIndex
CREATE INDEX "billing_clients_organization_id_idx" ON "billing_clients"("organization_id");

-- CreateIndex
CREATE INDEX "billing_services_client_id_idx" ON "billing_services"("client_id");

-- CreateIndex
CREATE INDEX "backup_trials_instance_id_created_id_idx" ON "backup_trials"("instance_id", "created" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "dashboards_project_id_id_idx" ON "dashboards"("project_id", "id");

-- CreateIndex
CREATE INDEX "dashboards_created_by_idx" ON "dashboards"("created_by");

-- CreateIndex
CREATE INDEX "notifications_project_id_kind_sequence_idx" ON "notifications"("project_id", "kind", "sequence");

-- CreateIndex
CREATE INDEX "notifications_project_id_severity_sequence_idx" ON "notifications"("project_id", "severity", "sequence");

-- CreateIndex
CREATE UNIQUE INDEX "notifications_project_id_sequence_key" ON "notifications"("project_id", "sequence");

-- CreateIndex
CREATE INDEX "notification_states_user_id_idx" ON "notification_states"("user_id");

-- AddForeignKey
ALTER TABLE "organization_members" ADD CONSTRAINT "organization_members_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "organization_members" ADD CONSTRAINT "organization_members_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "projects" ADD CONSTRAINT "projects_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "websocket_tickets" ADD CONSTRAINT "websocket_tickets_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "websocket_tickets" ADD CONSTRAINT "websocket_tickets_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "instances" ADD CONSTRAINT "instances_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "instances" ADD CONSTRAINT "instances_billing_service_id_fkey" FOREIGN KEY ("billing_service_id") REFERENCES "billing_services"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "volumes" ADD CONSTRAINT "volumes_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "snapshots" ADD CONSTRAINT "snapshots_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backups" ADD CONSTRAINT "backups_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "vpcs" ADD CONSTRAINT "vpcs_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "ssh_keys" ADD CONSTRAINT "ssh_keys_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_instance_id_fkey" FOREIGN KEY ("instance_id") REFERENCES "instances"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "instance_counters" ADD CONSTRAINT "instance_counters_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "resource_counters" ADD CONSTRAINT "resource_counters_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "billing_clients" ADD CONSTRAINT "billing_clients_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "billing_services" ADD CONSTRAINT "billing_services_client_id_fkey" FOREIGN KEY ("client_id") REFERENCES "billing_clients"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_option_prices" ADD CONSTRAINT "backup_option_prices_plan_fkey" FOREIGN KEY ("plan") REFERENCES "backup_options"("plan") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "backup_trials" ADD CONSTRAINT "backup_trials_instance_id_fkey" FOREIGN KEY ("instance_id") REFERENCES "instances"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "dashboards" ADD CONSTRAINT "dashboards_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "dashboards" ADD CONSTRAINT "dashboards_created_by_fkey" FOREIGN KEY ("created_by") REFERENCES "users"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_logs" ADD CONSTRAINT "notification_logs_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "notification_logs"("project_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_states" ADD CONSTRAINT "notification_states_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "notification_logs"("project_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_states" ADD CONSTRAINT "notification_states_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_reads" ADD CONSTRAINT "notification_reads_project_id_user_id_fkey" FOREIGN KEY ("project_id", "user_id") REFERENCES "notification_states"("project_id", "user_id") ON DELETE CASCADE ON UPDATE CASCADE;


-- One default dashboard a project.
CREATE UNIQUE INDEX "dashboards_one_default_key" ON "dashboards"("project_id") WHERE "is_default";

-- The lists behind the overview's figures: each holds only the rows that need attention.
CREATE INDEX "instances_without_hypervisor_idx" ON "instances"("project_id", "id") WHERE "hypervisor" IS NULL AND "status" <> 'deleted';
CREATE INDEX "instances_throttled_idx" ON "instances"("project_id", "id") WHERE "throttled" AND "status" <> 'deleted';
CREATE INDEX "instances_cancellation_idx" ON "instances"("project_id", "cancellation_at") WHERE "cancellation_at" IS NOT NULL AND "status" <> 'deleted';
CREATE INDEX "instances_present_idx" ON "instances"("project_id", "id") WHERE "status" <> 'deleted';
CREATE INDEX "tasks_failed_idx" ON "tasks"("project_id", "finished") WHERE "status" = 'failed';
CREATE INDEX "tasks_unfinished_idx" ON "tasks"("project_id", "created") WHERE "status" IN ('pending', 'running');

-- Is a trial of the instance open?
CREATE INDEX "backup_trials_open_idx" ON "backup_trials"("instance_id") WHERE "status" IN ('pending', 'active');

ALTER TABLE "instances" ADD CONSTRAINT "instances_sizes_check" CHECK ("vcpu" >= 0 AND "ram_mb" >= 0 AND "storage_gb" >= 0);
ALTER TABLE "volumes" ADD CONSTRAINT "volumes_size_check" CHECK ("size_gb" >= 0);
ALTER TABLE "tasks" ADD CONSTRAINT "tasks_finished_check" CHECK ("status" <> 'failed' OR "finished" IS NOT NULL);
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_data_check" CHECK (json_typeof("data") = 'object');
