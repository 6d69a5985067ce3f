import type { ProjectScope } from '../access/scope.ts';
import type { ProjectRole } from '../generated/prisma/enums.ts';
import { builder, type InputFields } from './builder.ts';
import type { Context } from './context.ts';
import { describeValues } from './enums.ts';
import { NodeRef, registerNode } from './node.ts';

export const ProjectRoleEnum = builder.enumType('ProjectRole', {
  description:
    'A viewer reads. A member also has dashboards and consoles. An admin also changes the dashboards of other users, sees and ends their console sessions, and publishes.',
  values: describeValues<ProjectRole>({
    viewer: 'Reads.',
    member: 'Also creates dashboards, changes their own, and opens consoles.',
    admin: 'Also changes the dashboards of other users, sees and ends their console sessions, and publishes notifications.',
  }),
});

/** The domains add their fields to this type: a resolver that has a project has the proof that the viewer may see it. */
export const ProjectRef = builder.objectRef<ProjectScope>('Project').implement({
  description: 'A project that the viewer may see, and everything in it.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.id({ description: 'The id of the project.', resolve: (scope) => scope.projectId }),
    organizationId: t.id({ description: 'The id of the organization that it belongs to.', resolve: (scope) => scope.organizationId }),
    name: t.string({ description: 'At most 255 characters.', resolve: (scope) => scope.project.name }),
    created: t.field({ type: 'DateTime', description: 'When it was created.', resolve: (scope) => scope.project.created }),
    role: t.expose('role', { type: ProjectRoleEnum, description: 'The viewer’s role in it.' }),
  }),
});

/** The `project` field of a type that belongs to a project. */
export const ownProject = {
  type: ProjectRef,
  description: 'The project that it belongs to.',
  resolve: ({ projectId }: { readonly projectId: string }, _args: object, { findProject }: Context) => findProject(projectId),
};

/** The input fields of a mutation that name its project (`context.openProject`). */
export function projectFields(t: InputFields) {
  return {
    organizationId: t.id({ required: true, description: 'The id of the organization that the project belongs to.' }),
    projectId: t.id({ required: true, description: 'The id of the project.' }),
  };
}

registerNode('Project', {
  inProject: async (_context, requested) => requested.map(({ scope, id }) => (scope.projectId === id ? scope : null)),
});

builder.queryFields((t) => ({
  project: t.field({
    type: ProjectRef,
    nullable: true,
    description: 'A project, by its id alone or by both ids; `not_found` if it does not exist, or if the viewer may not see it.',
    args: {
      organizationId: t.arg.id({ description: 'The id of the organization that the project belongs to.' }),
      id: t.arg.id({ required: true, description: 'The id of the project.' }),
    },
    extensions: { projectArgument: 'id' },
    resolve: (_root, { organizationId, id }, context) => context.openProject({ organizationId, projectId: id }),
  }),
}));
