-- The orders of what an instance has, as those of a project: a page is read from any place on, and no more than a page.
CREATE INDEX "tasks_instance_id_project_id_status_id_idx" ON "tasks"("instance_id", "project_id", "status", "id");
CREATE INDEX "tasks_instance_id_project_id_status_created_id_idx" ON "tasks"("instance_id", "project_id", "status", "created", "id");

CREATE INDEX "volumes_instance_id_project_id_created_id_idx" ON "volumes"("instance_id", "project_id", "created", "id");
CREATE INDEX volumes_instance_names_idx ON volumes (instance_id, project_id, (left(name, 255) COLLATE "C"), id);
