-- The indexes are such that one plan is right for a statement, whatever its values are and however large the project is.

-- Instances whose cancellation is scheduled, in the order of a page: no more of them is read than it takes.
CREATE INDEX instances_scheduled_idx ON instances (project_id, id) WHERE cancellation_at IS NOT NULL AND status <> 'deleted';

-- Tasks by their creation are read for each status by the index that orders them too; this one had all of a project walked.
DROP INDEX "tasks_project_id_created_status_idx";
