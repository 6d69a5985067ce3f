import type { ProjectScope } from '../access/scope.ts';
import { ProjectRole } from '../generated/prisma/enums.ts';
import { builder } from './builder.ts';

export const ProjectRoleEnum = builder.enumType(ProjectRole, {
  name: 'ProjectRole',
  description: 'viewer: reads. member: also dashboards and consoles. admin: also other people’s dashboards, and publishing.',
});

/** The domains hang their fields here: whoever holds a project holds the proof that the viewer may see it. */
export const ProjectRef = builder.objectRef<ProjectScope>('Project').implement({
  description: 'A project that the viewer may see, and all that is in it.',
  fields: (t) => ({
    id: t.id({ resolve: (scope) => scope.projectId }),
    organizationId: t.id({ resolve: (scope) => scope.organizationId }),
    name: t.string({ resolve: (scope) => scope.project.name }),
    created: t.field({ type: 'DateTime', resolve: (scope) => scope.project.created }),
    role: t.expose('role', { type: ProjectRoleEnum, description: 'What the viewer may do in it.' }),
  }),
});

builder.queryFields((t) => ({
  project: t.field({
    type: ProjectRef,
    nullable: true,
    description: 'Absent and forbidden look the same: `not_found`.',
    args: {
      organizationId: t.arg.id({ required: true, description: 'The organization that the project belongs to.' }),
      id: t.arg.id({ required: true, description: 'The project.' }),
    },
    resolve: (_root, { organizationId, id }, context) => context.openProject({ organizationId, projectId: id }),
  }),
}));
