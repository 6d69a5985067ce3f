// Apollo Server on Express with Prisma's client, and a DataLoader for each relation, as their documentation recommends.
import { createServer } from 'node:http';
import { ApolloServer } from '@apollo/server';
import { ApolloServerPluginDrainHttpServer } from '@apollo/server/plugin/drainHttpServer';
import { expressMiddleware } from '@as-integrations/express5';
import { PrismaPg } from '@prisma/adapter-pg';
import DataLoader from 'dataloader';
import express from 'express';
import { GraphQLError, GraphQLScalarType } from 'graphql';
import { isUuid, listen, notFound, Refusal, reasonOf, roleOf, spend, verify } from './access.mjs';

const { DATABASE_URL, DATABASE_POOL, PRISMA_CLIENT = '' } = process.env;
// The client generated from Portico's own schema.
const { PrismaClient } = await import(PRISMA_CLIENT);
const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: DATABASE_URL, max: Number(DATABASE_POOL), options: '-c timezone=UTC' }),
});

const typeDefs = /* GraphQL */ `
  scalar DateTime
  type Query { project(organizationId: ID!, id: ID!): Project }
  type Project { id: ID! instances(first: Int = 20, after: ID): InstanceConnection! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type InstanceConnection { nodes: [Instance!]! pageInfo: PageInfo! }
  type Instance {
    id: ID! name: String! status: String! plan: String! region: String! vcpu: Int! ramMb: Int! storageGb: Int! hypervisor: String
    created: DateTime! tasks(first: Int = 20): TaskConnection! volumes(first: Int = 20): VolumeConnection! backupTrial: BackupTrialState!
  }
  type TaskConnection { nodes: [Task!]! }
  type Task { id: ID! kind: String! status: String! created: DateTime! started: DateTime finished: DateTime }
  type VolumeConnection { nodes: [Volume!]! }
  type Volume { id: ID! name: String! sizeGb: Int! created: DateTime! }
  type BackupTrialState { trial: BackupTrial eligible: Boolean! reason: String! monthlyPrice: String! currency: String! trialDays: Int! }
  type BackupTrial { id: ID! status: String! source: String! cycle: String! monthlyPrice: String! startedAt: DateTime endsAt: DateTime created: DateTime! }
`;

/** @typedef {{id: string, currency: string}} Project @typedef {{id: string, plan: string, status: string, dailyBackup: boolean, currency: string}} Instance */

/** The rows of each instance, in the order of the instances. @param {readonly string[]} ids @param {any[]} rows @param {number} first */
function group(ids, rows, first) {
  /** @type {Map<string, any[]>} */
  const lists = new Map(ids.map((id) => [id, []]));
  for (const row of rows) lists.get(row.instanceId)?.push(row);
  return ids.map((id) => lists.get(id)?.slice(0, first) ?? []);
}

/** The first tasks of each instance. @param {number} first */
const createTaskLoader = (first) =>
  new DataLoader(async (/** @type {readonly string[]} */ ids) => {
    const instances = await prisma.instance.findMany({
      where: { id: { in: [...ids] } },
      select: { id: true, tasks: { orderBy: { id: 'desc' }, take: first } },
    });
    const found = new Map(instances.map((/** @type {{id: string, tasks: unknown[]}} */ { id, tasks }) => [id, tasks]));
    return ids.map((id) => found.get(id) ?? []);
  });

/** @param {number} first */
const createVolumeLoader = (first) =>
  new DataLoader(async (/** @type {readonly string[]} */ ids) =>
    group(ids, await prisma.volume.findMany({ where: { instanceId: { in: [...ids] } }, orderBy: { id: 'asc' } }), first),
  );

const createTrialLoader = () =>
  new DataLoader(async (/** @type {readonly Instance[]} */ instances) => {
    const ids = instances.map(({ id }) => id);
    const [facts, options] = await Promise.all([
      prisma.instance.findMany({
        where: { id: { in: ids } },
        select: {
          id: true,
          billingService: { select: { clientId: true, cycle: true } },
          backupTrials: { orderBy: [{ created: 'desc' }, { id: 'desc' }], take: 1 },
          _count: { select: { backupTrials: { where: { status: { in: ['pending', 'active'] } } } } },
        },
      }),
      prisma.backupOption.findMany({ where: { plan: { in: instances.map(({ plan }) => plan) } }, include: { prices: true } }),
    ]);
    const factsById = new Map(facts.map((/** @type {{id: string}} */ row) => [row.id, row]));
    const optionsByPlan = new Map(options.map((/** @type {{plan: string}} */ option) => [option.plan, option]));
    return instances.map(({ id, plan, status, dailyBackup, currency }) => {
      const { billingService: service, backupTrials, _count } = /** @type {any} */ (factsById.get(id));
      const option = /** @type {any} */ (optionsByPlan.get(plan));
      const reason = reasonOf({
        status,
        daily_backup: dailyBackup,
        has_open_trial: _count.backupTrials > 0,
        has_service: service !== null,
        has_client: service !== null && service.clientId !== null,
        has_option: option !== undefined,
        is_cycle_sold: option?.prices.some((/** @type {{cycle: string}} */ price) => price.cycle === service?.cycle),
      });
      const [trial] = backupTrials;
      return {
        trial: trial ? { ...trial, monthlyPrice: trial.monthlyPrice.toFixed(2) } : null,
        eligible: reason === '',
        reason,
        monthlyPrice: option?.monthlyPrice.toFixed(2) ?? '0.00',
        currency: option?.currency ?? currency,
        trialDays: option?.trialDays ?? 0,
      };
    });
  });

/** A loader for each size of a list. @param {(first: number) => DataLoader<string, any[]>} create */
function bySize(create) {
  /** @type {Map<number, DataLoader<string, any[]>>} */
  const loaders = new Map();
  return (/** @type {number} */ first) => {
    const loader = loaders.get(first) ?? create(first);
    loaders.set(first, loader);
    return loader;
  };
}

const createLoaders = () => ({ tasks: bySize(createTaskLoader), volumes: bySize(createVolumeLoader), trials: createTrialLoader() });
/** @typedef {{userId: string} & ReturnType<typeof createLoaders>} Context */

const resolvers = {
  DateTime: new GraphQLScalarType({ name: 'DateTime', serialize: (value) => /** @type {Date} */ (value).toISOString() }),
  Query: {
    /** @param {unknown} _root @param {{organizationId: string, id: string}} ids @param {Context} context @returns {Promise<Project>} */
    async project(_root, { organizationId, id }, { userId }) {
      if (!isUuid(organizationId) || !isUuid(id)) throw notFound();
      const found = await prisma.project.findFirst({
        where: { id, organizationId },
        select: {
          organization: { select: { currency: true, members: { where: { userId }, select: { role: true } } } },
          members: { where: { userId }, select: { role: true } },
        },
      });
      const member = found?.organization.members[0];
      roleOf(member && { organization_role: member.role, project_role: found.members[0]?.role ?? null });
      return { id, currency: found.organization.currency };
    },
  },
  Project: {
    /** @param {Project} project @param {{first: number, after?: string}} paging */
    async instances({ id, currency }, { first, after }) {
      const rows = await prisma.instance.findMany({
        where: { projectId: id, status: { not: 'deleted' }, ...(after && { id: { gt: after } }) },
        orderBy: { id: 'asc' },
        take: first + 1,
      });
      const nodes = rows.slice(0, first).map((/** @type {Instance} */ row) => ({ ...row, currency }));
      return { nodes, pageInfo: { hasNextPage: rows.length > first, endCursor: nodes.at(-1)?.id ?? null } };
    },
  },
  Instance: {
    /** @param {Instance} instance @param {{first: number}} paging @param {Context} context */
    tasks: async ({ id }, { first }, { tasks }) => ({ nodes: await tasks(first).load(id) }),
    /** @param {Instance} instance @param {{first: number}} paging @param {Context} context */
    volumes: async ({ id }, { first }, { volumes }) => ({ nodes: await volumes(first).load(id) }),
    /** @param {Instance} instance @param {unknown} _args @param {Context} context */
    backupTrial: (instance, _args, { trials }) => trials.load(instance),
  },
};

const app = express();
const httpServer = createServer(app);
const server = new ApolloServer({ typeDefs, resolvers, plugins: [ApolloServerPluginDrainHttpServer({ httpServer })] });
await server.start();
app.use(
  '/graphql',
  express.json(),
  expressMiddleware(server, {
    async context({ req, res }) {
      try {
        const { userId } = await verify(req.headers.authorization);
        const user = await prisma.user.findUnique({ where: { id: userId } });
        if (!user || user.disabledAt) throw new Refusal(401, 'not_authenticated', 'The credential is not valid.');
        res.set(await spend(userId));
        return { userId, ...createLoaders() };
      } catch (failure) {
        if (!(failure instanceof Refusal)) throw failure;
        const { status, code, message } = failure;
        throw new GraphQLError(message, { extensions: { code, http: { status } } });
      }
    },
  }),
);
listen(httpServer);
