-- The lists of a project and of an instance, each from any place on in the order of its ids.
CREATE INDEX "volumes_project_id_id_idx" ON "volumes"("project_id", "id");
CREATE INDEX "volumes_instance_id_project_id_id_idx" ON "volumes"("instance_id", "project_id", "id");
DROP INDEX "volumes_project_id_idx";

CREATE INDEX "snapshots_project_id_id_idx" ON "snapshots"("project_id", "id");
CREATE INDEX "snapshots_instance_id_project_id_id_idx" ON "snapshots"("instance_id", "project_id", "id");
DROP INDEX "snapshots_project_id_idx";

CREATE INDEX "backups_project_id_id_idx" ON "backups"("project_id", "id");
CREATE INDEX "backups_instance_id_project_id_id_idx" ON "backups"("instance_id", "project_id", "id");
DROP INDEX "backups_project_id_idx";

CREATE INDEX "vpcs_project_id_id_idx" ON "vpcs"("project_id", "id");
DROP INDEX "vpcs_project_id_idx";

CREATE INDEX "ssh_keys_project_id_id_idx" ON "ssh_keys"("project_id", "id");
DROP INDEX "ssh_keys_project_id_idx";

CREATE INDEX "tasks_instance_id_project_id_id_idx" ON "tasks"("instance_id", "project_id", "id");
DROP INDEX "tasks_instance_id_idx";

-- The members who see every project of their organization, without a look at the others.
CREATE INDEX organization_members_administrators_idx ON organization_members (organization_id, user_id) WHERE role <> 'member';
