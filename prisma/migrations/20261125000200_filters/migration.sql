-- The filters of instances, as before, but for statements that have the condition: PostgreSQL 18 skips over the values of a
-- leading column, and took one of these indexes for an index of the project, where plans or regions are few.
CREATE INDEX instances_regions_idx ON instances (region, project_id, status) WHERE region >= '';
CREATE INDEX instances_plans_idx ON instances (plan, project_id, status) WHERE plan >= '';
DROP INDEX "instances_region_project_id_status_idx";
DROP INDEX "instances_plan_project_id_status_idx";
