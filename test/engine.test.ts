import { type DocumentNode, type ExecutionResult, execute, GraphQLError, parse, validate } from 'graphql';
import { expect, it } from 'vitest';
import { type Context, type ContextSource, createContext } from '../src/graph/context.ts';
import { FairLimit } from '../src/kernel/fairlimit.ts';
import { Fault } from '../src/kernel/fault.ts';
import { KeyedSemaphore } from '../src/kernel/semaphore.ts';
import { checkOperation } from '../src/pipeline/check.ts';
import type { PipelineSteps } from '../src/pipeline/operation.ts';
import { createPipeline } from '../src/pipeline/pipeline.ts';
import { literalErrorsOf } from '../src/pipeline/validation.ts';
import { createLogger } from '../src/platform/logger.ts';
import { schema as served } from '../src/schema.ts';
import { countCases } from './support/cases.ts';
import { makeProbe } from './support/probe.ts';
import { seededRandom } from './support/random.ts';
import { type Drawn, drawDocument } from './support/selections.ts';

/** `DOCUMENTS=100000 npx vitest run test/engine.test.ts` takes a while and reports the number of comparisons. */
const DOCUMENTS = countCases(1_500, 'DOCUMENTS');
const SEED = Number(process.env.SEED ?? 20261121);
const USES = 4;
const AT_ONCE = 16;

const schema = makeProbe(served);
const { getEnveloped } = createPipeline(schema, { subscriptionsPerUser: 1 });
const services = { responseLimits: { maxBytes: 2 ** 30, largeResponses: new FairLimit(1) }, costlySemaphore: new KeyedSemaphore(1) };
const log = createLogger('silent');
const nowhere = async () => {
  throw Fault.notFound();
};
/** A viewer without access to anything, because the comparison needs no database. */
const reach = {
  database: { query: async () => [] },
  openLogger: () => log,
  openProject: nowhere,
  requireViewer: () => ({ userId: '' }),
  requireSession: () => ({ userId: '' }),
};
const source = { viewer: null, services } as unknown as ContextSource;
const openContext = (): Context => ({ ...createContext(source), ...reach }) as unknown as Context;

const write = ({ errors, data }: ExecutionResult) => JSON.stringify({ ...(errors && { errors }), data });

/** The response of graphql-js to a document; null for one that is rejected before execution. */
async function walk({ query, operationName, variables }: Drawn): Promise<string | null> {
  const document = parse(query);
  if (validate(schema, document).length > 0) return null;
  const args = { schema, document, operationName, variableValues: variables, contextValue: openContext() };
  return (await checkOperation(args)) ? null : write(await execute(args));
}

/** Executes a document as the APIs do; null for one rejected by the rules that the schema declares beyond its types. */
async function ask({ query, operationName, variables: variableValues }: Drawn): Promise<string | null> {
  const enveloped = getEnveloped({ openContext });
  const document = parseAllowed(enveloped, query);
  if (!document) return null;
  if (literalErrorsOf.has(document)) return null;
  const contextValue = await enveloped.contextFactory();
  return write(await enveloped.execute({ schema, document, operationName, variableValues, contextValue }));
}

function parseAllowed(enveloped: PipelineSteps, query: string): DocumentNode | null {
  try {
    const document = enveloped.parse(query);
    const errors = enveloped.validate(schema, document);
    expect(errors).toEqual([]);
    return document;
  } catch (refusal) {
    if (refusal instanceof GraphQLError && /^Syntax Error: \w+ limit of \d+ exceeded/.test(refusal.message)) return null;
    throw refusal;
  }
}

const counts = { drawn: 0, compared: 0, withErrors: 0, withDirectives: 0, withHostileNames: 0 };

async function compare(drawn: Drawn): Promise<void> {
  counts.drawn += 1;
  const expected = await walk(drawn);
  if (expected === null) return;
  for (let use = 0; use < USES; use += 1) {
    const found = await ask(drawn);
    if (found === null) return;
    if (found !== expected) expect({ ...drawn, use, found }).toEqual({ ...drawn, use, found: expected });
  }
  counts.compared += 1;
  counts.withErrors += Number(expected.startsWith('{"errors"'));
  counts.withDirectives += Number(/@(skip|include)/.test(drawn.query));
  counts.withHostileNames += Number(/\b(constructor|__proto__|toString)\b/.test(drawn.query));
}

it('answers any document as graphql-js does, to the byte, however often it is asked', { timeout: 14_400_000 }, async () => {
  const random = seededRandom(SEED);
  while (counts.compared < DOCUMENTS) await Promise.all(Array.from({ length: AT_ONCE }, () => compare(drawDocument(schema, random))));
  if (process.env.DOCUMENTS) console.log(counts);
  expect(counts.compared / counts.drawn).toBeGreaterThan(0.5);
  for (const count of [counts.withErrors, counts.withDirectives, counts.withHostileNames]) {
    expect(count).toBeGreaterThan(counts.compared / 20);
  }
});

it('answers the thousandth time as the first', async () => {
  const random = seededRandom(7);
  for (let kinds = 0; kinds < 2; ) {
    const drawn = drawDocument(schema, random);
    const expected = /@(skip|include)/.test(drawn.query) ? await walk(drawn) : null;
    if (expected === null || (await ask(drawn)) === null) continue;
    kinds += 1;
    for (let use = 1; use < 1_000; use += 1) if ((await ask(drawn)) !== expected) throw new Error(`use ${use} of ${drawn.query}`);
  }
});

it('never takes a client’s text for code', async () => {
  const marker = '__MAGIC_DATE__33a9e76d_02e0_4128_8e92_3530ad3da74d';
  const drawn = { query: `{ probe(json: "${marker}(globalThis.hasRun = true)") { key } }`, operationName: null, variables: {} };
  const expected = await walk(drawn);
  for (let use = 0; use < USES; use += 1) expect(await ask(drawn)).toBe(expected);
  expect(globalThis).not.toHaveProperty('hasRun');
});
