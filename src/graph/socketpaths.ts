/** The path of a project, the prefix of most paths of v1. The parameters of a path are named as Express has them. */
export const projectPath = '/v1/organizations/:organization_id/projects/:project_id';

/** The paths of the WebSockets that a ticket opens (§6). */
export const socketPaths = {
  notifications: `${projectPath}/notifications/ws`,
  console: `${projectPath}/compute/instances/:instance_id/console/ws`,
} as const;

/** A path with the ids in place of its parameters, by their names. An id must need no encoding, as a UUID. */
export function fillPath(path: string, ids: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+)/g, (parameter, name: string) => ids[name] ?? parameter);
}
