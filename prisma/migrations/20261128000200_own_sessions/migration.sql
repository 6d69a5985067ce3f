-- One's own console sessions of an instance, however many others have there.
CREATE INDEX "console_sessions_instance_id_user_id_id_idx" ON "console_sessions"("instance_id", "user_id", "id");
