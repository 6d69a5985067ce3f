import type { ProjectScope } from '../access/scope.ts';
import type { Viewer } from '../access/viewer.ts';
import { pickRows } from '../kernel/rows.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import { NodeRef, registerNode } from './node.ts';

/** A user as the other members of an organization may see them. */
export interface Colleague {
  readonly id: string;
  readonly email: string;
  readonly name: string;
}

/** `Viewer` for the viewer's own id, wherever it appears, and `Colleague` for any other: one id has one type. */
export const UserRef = builder.interfaceRef<Viewer | Colleague>('User').implement({
  description: 'A user, as the other members of an organization see them.',
  interfaces: [NodeRef],
  fields: (t) => ({
    email: t.exposeString('email', { description: 'The e-mail address that the user signs in with.' }),
    name: t.exposeString('name', { description: 'The user’s name.' }),
  }),
  resolveType: typenameOf,
});

builder.objectRef<Colleague>('Colleague').implement({
  description: 'Another user, in an organization that the viewer belongs to.',
  interfaces: [UserRef, NodeRef],
  fields: (t) => ({ id: t.exposeID('id', { description: 'The id of the user.' }) }),
});

/** A member of the organization of an opened project; null for a user who has left it. */
export function loadMember(
  context: Context,
  { organizationId }: Pick<ProjectScope, 'organizationId'>,
  userId: string,
): Promise<Viewer | Colleague | null> {
  return context.loadBatched(findMembers, `${organizationId} ${userId}`);
}

/** Members by the ids of the organization and the user, with a space between them. */
async function findMembers(context: Context, keys: readonly string[]): Promise<Array<Viewer | Colleague | null>> {
  const pairs = keys.map((key) => key.split(' '));
  const rows = await context.database.query<Colleague & { readonly organizationId: string }>`
    SELECT member.organization_id AS "organizationId", users.id, users.email, users.name
    FROM unnest(${pairs.map(([organization = '']) => organization)}::uuid[], ${pairs.map(([, user = '']) => user)}::uuid[])
      AS wanted (organization_id, user_id)
    JOIN organization_members AS member
      ON member.organization_id = wanted.organization_id AND member.user_id = wanted.user_id
    JOIN users ON users.id = member.user_id`;
  return pickRows(keys, rows, ({ organizationId, id }) => `${organizationId} ${id}`).map((row) => row && viewerOrColleague(context, row));
}

/** The viewer instead of their row, so that they are the same object everywhere. */
export function viewerOrColleague({ viewer }: Context, user: Colleague): Viewer | Colleague {
  return viewer && viewer.userId === user.id ? viewer : user;
}

registerNode('User', {
  async outside(context, ids) {
    const { userId } = context.requireViewer();
    const rows = await context.database.query<Colleague>`
      SELECT users.id, users.email, users.name FROM users
      WHERE users.id = ANY (${ids}::uuid[]) AND (users.id = ${userId}::uuid OR (
        SELECT true FROM organization_members AS theirs
        JOIN organization_members AS own ON own.organization_id = theirs.organization_id AND own.user_id = ${userId}::uuid
        WHERE theirs.user_id = users.id LIMIT 1))`;
    return pickRows(ids, rows, ({ id }) => id).map((row) => {
      const user = row && viewerOrColleague(context, row);
      return user && { ...user, __typename: typenameOf(user) };
    });
  },
});

function typenameOf(user: Viewer | Colleague): 'Viewer' | 'Colleague' {
  return 'userId' in user ? 'Viewer' : 'Colleague';
}
