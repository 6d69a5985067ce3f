import { type DocumentNode, type ExecutionResult, execute, GraphQLError, getIntrospectionQuery, parse, validate } from 'graphql';
import { expect, it, vi } from 'vitest';
import { type Context, type ContextSource, createContext } from '../../src/graph/context.ts';
import { FairLimit } from '../../src/kernel/fairlimit.ts';
import { Fault } from '../../src/kernel/fault.ts';
import { KeyedSemaphore } from '../../src/kernel/semaphore.ts';
import { checkOperation } from '../../src/pipeline/check.ts';
import type { PipelineSteps } from '../../src/pipeline/operation.ts';
import { createPipeline } from '../../src/pipeline/pipeline.ts';
import { literalErrorsByDocument } from '../../src/pipeline/validation.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { schema as served } from '../../src/schema.ts';
import { countCases } from '../support/cases.ts';
import { makeProbe } from '../support/probe.ts';
import { seededRandom } from '../support/random.ts';
import { type Drawn, drawDocument } from '../support/selections.ts';

// The pipeline executes by graphql-js. Its caches (of documents and of what is checked of them), its plugins and its serialization
// must change nothing of what graphql-js alone answers to a document that they let pass.

/** `DOCUMENTS=100000 npx vitest run test/pipeline/pipeline.test.ts` takes a while. */
const DOCUMENTS = countCases(1_500, 'DOCUMENTS');

const schema = makeProbe(served);
const { getEnveloped, documents } = createPipeline(schema, { subscriptionsPerUser: 1 });
const services = { responseLimits: { maxBytes: 2 ** 30, largeResponses: new FairLimit(1) }, costlySemaphore: new KeyedSemaphore(1) };
const log = createLogger('silent');
const nowhere = async () => {
  throw Fault.notFound();
};
/** A viewer without access to anything, because the comparison needs no database. */
const access = {
  database: { query: async () => [] },
  openLogger: () => log,
  openProject: nowhere,
  requireViewer: () => ({ userId: '' }),
  requireSession: () => ({ userId: '' }),
};
const source = { viewer: null, services } as unknown as ContextSource;
const openContext = (): Context => ({ ...createContext(source), ...access }) as unknown as Context;

const bodyOf = ({ errors, data }: ExecutionResult) => ({ ...(errors && { errors }), data });

/** The response of graphql-js alone; null for a document that the APIs reject before execution. */
async function answerPlainly({ query, operationName, variables }: Drawn): Promise<string | null> {
  const document = parse(query);
  if (validate(schema, document).length > 0) return null;
  const args = { schema, document, operationName, variableValues: variables, contextValue: openContext() };
  return (await checkOperation(args)) ? null : JSON.stringify(bodyOf(await execute(args)));
}

/** The response of the pipeline, serialized at once and in steps; null for one rejected by the rules that the schema declares beyond its types. */
async function answer({ query, operationName, variables: variableValues }: Drawn): Promise<string[] | null> {
  const enveloped = getEnveloped({ openContext });
  const document = parseAllowed(enveloped, query);
  if (!document || literalErrorsByDocument.has(document)) return null;
  const contextValue = await enveloped.contextFactory();
  const body = bodyOf(await enveloped.execute({ schema, document, operationName, variableValues, contextValue }));
  const inSteps = await contextValue.openResponseBudget().serialize(body);
  return [String(await contextValue.serializeResponse(body)), String(inSteps)];
}

/** A valid document; null for one that exceeds a limit of documents. */
function parseAllowed(enveloped: PipelineSteps, query: string): DocumentNode | null {
  try {
    const document = enveloped.parse(query);
    expect(enveloped.validate(schema, document)).toEqual([]);
    return document;
  } catch (rejection) {
    if (rejection instanceof GraphQLError && /^Syntax Error: \w+ limit of \d+ exceeded/.test(rejection.message)) return null;
    throw rejection;
  }
}

/** What must occur in many of the documents, so that the comparison says something about it. */
const kinds: Readonly<Record<string, (drawn: Drawn, response: string) => boolean>> = {
  errors: (_drawn, response) => response.startsWith('{"errors"'),
  directives: ({ query }) => /@(skip|include)/.test(query),
  fragments: ({ query }) => / fragment /.test(query),
  'repeated fields': ({ query }) => /\b(\w+) \1\b/.test(query),
  'hostile names': ({ query }) => /\b(constructor|__proto__|toString)\b/.test(query),
  'defaults of variables': ({ query }) => /\$\w+: [\w![\]]+ = /.test(query),
  'variables that are null': ({ variables }) => Object.values(variables).includes(null),
  'variables that are absent': ({ query, variables }) => (query.match(/\$\w+: /g) ?? []).length > Object.keys(variables).length,
};

it('answers a new and a known document as graphql-js alone does, to the byte', { timeout: 14_400_000 }, async () => {
  const random = seededRandom(20261121);
  const counts = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, 0]));
  let drawnCount = 0;
  for (let compared = 0; compared < DOCUMENTS; ) {
    const drawn = drawDocument(schema, random);
    drawnCount += 1;
    const expected = await answerPlainly(drawn);
    if (expected === null) continue;
    const first = await answer(drawn);
    if (first === null) continue;
    expect(documents.get(drawn.query), drawn.query).toBeDefined();
    const found = [...first, ...((await answer(drawn)) ?? [])];
    expect({ ...drawn, found }).toEqual({ ...drawn, found: [expected, expected, expected, expected] });
    compared += 1;
    for (const [kind, occurs] of Object.entries(kinds)) counts[kind] = Number(counts[kind]) + Number(occurs(drawn, expected));
  }
  expect(DOCUMENTS / drawnCount).toBeGreaterThan(0.3);
  for (const [kind, count] of Object.entries(counts)) expect(count, kind).toBeGreaterThan(DOCUMENTS / 20);
});

it('a costly operation is not executed for a client that has gone while it waited', async () => {
  let hasGone = false;
  const enveloped = getEnveloped({ openContext: () => createContext({ ...source, isAbandoned: () => hasGone }) });
  const introspect = async () => {
    const contextValue = await enveloped.contextFactory();
    return enveloped.execute({ schema, document: enveloped.parse(getIntrospectionQuery()), contextValue });
  };
  expect((await introspect()).data).toBeDefined();

  const first = services.costlySemaphore.acquire('anonymous', () => 0);
  const second = introspect();
  await vi.waitUntil(() => services.costlySemaphore.waiting === 1);
  hasGone = true;
  first.release();
  await expect(second).rejects.toThrow('The client has gone.');
});
