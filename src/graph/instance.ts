import type { GraphQLResolveInfo } from 'graphql';
import type { Instance } from '../generated/prisma/client.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import { loadInProject, NodeRef } from './node.ts';
import { ownProject } from './project.ts';

/** A type that several domains link to; each adds its own fields. */
export const InstanceRef = builder.prismaObject('Instance', {
  description: 'A virtual server.',
  interfaces: [NodeRef],
  fields: (t) => ({ id: t.exposeID('id', { description: 'The id of the instance.' }), project: t.field(ownProject) }),
});

interface OfInstance {
  readonly projectId: string;
  readonly instanceId: string | null;
}

/** The `instance` field of a type that may belong to an instance of its project; null if that no longer exists. */
export const ownInstance = (description: string) => ({
  type: InstanceRef,
  nullable: true as const,
  description,
  resolve: ({ projectId, instanceId }: OfInstance, _args: object, context: Context, info: GraphQLResolveInfo) =>
    instanceId === null
      ? null
      : loadInProject<Instance>(context, 'Instance', { scope: context.findProject(projectId), id: instanceId }, info),
});
