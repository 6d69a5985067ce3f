-- The process that runs a console session, which is another than its owner while that waits for the output. Null for a session
-- of the release before.
ALTER TABLE console_sessions ADD COLUMN "runner" UUID;
