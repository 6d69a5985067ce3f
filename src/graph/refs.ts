import { builder } from './builder.ts';
import { NodeRef } from './node.ts';
import { ownProject } from './project.ts';

/** A type that several domains link to; each adds its own fields. */
export const InstanceRef = builder.prismaObject('Instance', {
  description: 'A virtual server.',
  interfaces: [NodeRef],
  fields: (t) => ({ id: t.exposeID('id', { description: 'The id of the instance.' }), project: t.field(ownProject) }),
});
