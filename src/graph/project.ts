import type { ProjectScope } from '../access/scope.ts';
import type { ProjectRole } from '../generated/prisma/enums.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import { describeValues } from './enums.ts';
import { NodeRef, registerNode } from './node.ts';

export const ProjectRoleEnum = builder.enumType('ProjectRole', {
  description: 'viewer: reads. member: also dashboards and consoles. admin: also other people’s dashboards, and publishing.',
  values: describeValues<ProjectRole>({
    viewer: 'Reads.',
    member: 'Also makes dashboards, changes their own, and opens consoles.',
    admin: 'Also changes other people’s dashboards, and publishes notifications.',
  }),
});

/** The domains add their fields to this type: a resolver that has a project has the proof that the viewer may see it. */
export const ProjectRef = builder.objectRef<ProjectScope>('Project').implement({
  description: 'A project that the viewer may see, and all that is in it.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.id({ description: 'The project.', resolve: (scope) => scope.projectId }),
    organizationId: t.id({ description: 'The organization that it belongs to.', resolve: (scope) => scope.organizationId }),
    name: t.string({ description: 'At most 255 characters.', resolve: (scope) => scope.project.name }),
    created: t.field({ type: 'DateTime', description: 'When it was made.', resolve: (scope) => scope.project.created }),
    role: t.expose('role', { type: ProjectRoleEnum, description: 'What the viewer may do in it.' }),
  }),
});

/** The `project` field of a type that belongs to a project. */
export const ownProject = {
  type: ProjectRef,
  description: 'The project that it belongs to.',
  resolve: ({ projectId }: { readonly projectId: string }, _args: object, { findProject }: Context) => findProject(projectId),
};

registerNode('Project', {
  inProject: async (_context, requested) => requested.map(({ scope, id }) => (scope.projectId === id ? scope : null)),
});

builder.queryFields((t) => ({
  project: t.field({
    type: ProjectRef,
    nullable: true,
    description: 'A project, by its id alone or by both ids. Absent and forbidden look the same: `not_found`.',
    args: {
      organizationId: t.arg.id({ description: 'The organization that the project belongs to.' }),
      id: t.arg.id({ required: true, description: 'The project.' }),
    },
    extensions: { projectArgument: 'id' },
    resolve: (_root, { organizationId, id }, context) => context.openProject({ organizationId, projectId: id }),
  }),
}));
