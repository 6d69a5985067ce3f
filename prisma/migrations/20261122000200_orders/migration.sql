-- The orders of a list, for each status: a page is read from any place on, of whichever statuses, and no more than a page.
-- Names are compared as the collation "C" does, the same in every locale. Of a name from before there was a limit, only the
-- beginning is in the index, which takes no more than some 2,700 bytes of a row.
CREATE INDEX "instances_project_id_status_created_id_idx" ON "instances"("project_id", "status", "created", "id");
CREATE INDEX instances_names_idx ON instances (project_id, status, (left(name, 255) COLLATE "C"), id);

-- The filters of instances: they are counted by these alone, and found where there are few of them. The filter stands first,
-- so that no plan takes one of them for an index of the project.
CREATE INDEX "instances_region_project_id_status_idx" ON "instances"("region", "project_id", "status");
CREATE INDEX "instances_plan_project_id_status_idx" ON "instances"("plan", "project_id", "status");

CREATE INDEX "tasks_project_id_status_created_id_idx" ON "tasks"("project_id", "status", "created", "id");

CREATE INDEX "volumes_project_id_created_id_idx" ON "volumes"("project_id", "created", "id");
CREATE INDEX volumes_names_idx ON volumes (project_id, (left(name, 255) COLLATE "C"), id);
