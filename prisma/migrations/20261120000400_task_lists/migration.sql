-- A project's tasks are listed by id, all of them or those of one status.
CREATE INDEX "tasks_project_id_id_idx" ON "tasks"("project_id", "id");
CREATE INDEX "tasks_project_id_status_id_idx" ON "tasks"("project_id", "status", "id");
