import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestResponse } from '../support/app.ts';
import { operations } from '../support/contract.ts';
import { findLowPort } from '../support/ports.ts';
import { checkout, commandOf, run } from './tools.ts';

interface Exchange extends Pick<TestResponse, 'status' | 'headers' | 'text'> {
  readonly method: string;
  readonly path: string;
}

const exchanges: Exchange[] = [];
const seen = new Set<string>();
const violations: unknown[] = [];
let upstream: Server;
let witness: Server;
const prisms: Array<ReturnType<typeof spawn>> = [];
let prismUrl: string;

const addressOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const listen = (server: Server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

const templates = Object.entries(operations).map(([name, { method, path }]) => ({
  name,
  method: method.toUpperCase(),
  pattern: new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`),
}));
const { paths, components } = JSON.parse(readFileSync(join(checkout, 'openapi.json'), 'utf8'));
const documented = ({ name, method }: { name: string; method: string }) =>
  paths[operations[name as keyof typeof operations].path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()].responses;
const resolve = (part: { $ref?: string } | undefined) => {
  const [, , section = '', name = ''] = part?.$ref?.split('/') ?? [];
  return part?.$ref ? components[section][name] : part;
};

/** What Prism lets pass: a status of which the document says nothing, and headers that are there or missing against it. */
function headerViolations(exchange: Exchange, response: { headers: Record<string, { $ref: string }> } | undefined): unknown[] {
  if (!response) return [{ exchange, status: 'not documented' }];
  const ours = ['etag', 'cache-control', 'retry-after', 'www-authenticate', 'deprecation', 'sunset', 'ratelimit', 'ratelimit-policy'];
  const known = Object.keys(response.headers).map((name) => name.toLowerCase());
  const undocumented = ours.filter((name) => exchange.headers[name] !== undefined && !known.includes(name));
  const required = Object.keys(response.headers).filter((name) => resolve(response.headers[name]).required);
  const missing = required.filter((name) => exchange.headers[name.toLowerCase()] === undefined);
  return undocumented.length + missing.length > 0 ? [{ exchange, undocumented, missing }] : [];
}

const operationAt = ({ method, path }: Exchange) =>
  templates.find((one) => one.method === method && one.pattern.test(path.replace(/\?.*/s, '')));

/**
 * Prism stands between the suite and the responses. What it would not carry of a bad request (it repairs bodies, and refuses
 * what has no credential) is left out: the upstream answers what the server has answered, to the byte.
 */
async function judge(exchange: Exchange): Promise<void> {
  const operation = operationAt(exchange);
  if (!operation) return;
  const number = exchanges.push(exchange) - 1;
  seen.add(`${operation.name} ${exchange.status}`);
  violations.push(...headerViolations(exchange, resolve(documented(operation)[exchange.status])));
  const { pathname } = new URL(exchange.path, prismUrl);
  const response = await fetch(prismUrl + pathname, {
    method: exchange.method,
    headers: { authorization: 'Bearer token', 'x-exchange': String(number) },
  });
  const text = await response.text();
  if (response.status !== exchange.status || text.includes('stoplight.io/prism/errors')) violations.push({ exchange, prism: text });
}

/** Prism before the upstream; returns its address. */
async function openPrism(validatesRequests: boolean): Promise<string> {
  const port = String(await findLowPort());
  const document = join(checkout, 'openapi.json');
  const args = ['proxy', document, addressOf(upstream), '--errors', '--validate-request', String(validatesRequests)];
  const prism = spawn(process.execPath, [commandOf('@stoplight/prism-cli'), ...args, '--cors', 'false', '--port', port]);
  prisms.push(prism);
  await new Promise<void>((resolve, reject) => {
    prism.stdout.on('data', (chunk) => String(chunk).includes('Prism is listening') && resolve());
    prism.once('exit', (code) => reject(new Error(`Prism ended with ${code}`)));
  });
  return `http://127.0.0.1:${port}`;
}

beforeAll(async () => {
  upstream = createServer((request, response) => {
    const exchange = exchanges[Number(request.headers['x-exchange'])];
    const headers = Object.entries(exchange?.headers ?? {}).filter(([name]) => !['connection', 'transfer-encoding'].includes(name));
    response.writeHead(exchange?.status ?? 500, Object.fromEntries(headers) as Record<string, string>).end(exchange?.text);
  });
  witness = createServer(async (request, response) => {
    await judge(JSON.parse(await readAll(request)));
    response.end();
  });
  await Promise.all([listen(upstream), listen(witness)]);
  prismUrl = await openPrism(false);
});
afterAll(() => {
  for (const prism of prisms) prism.kill();
  upstream.close();
  witness.close();
});

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

it('Prism refuses a wrong response', async () => {
  const path = templatePath('compute_overview');
  const headers = { 'content-type': 'application/json', 'x-request-id': 'x' };
  await judge({ method: 'GET', path, status: 200, headers, text: '[{"attention":{}}]' });
  await judge({ method: 'GET', path, status: 418, headers, text: '{}' });
  const refusal = { detail: 'No.', code: 'not_authenticated', error: 'No.' };
  await judge({
    method: 'GET',
    path,
    status: 401,
    headers: { ...headers, 'www-authenticate': 'Bearer', 'retry-after': '1' },
    text: JSON.stringify(refusal),
  });
  expect(violations.splice(0)).toEqual([
    expect.objectContaining({ prism: expect.stringContaining('VIOLATIONS') }),
    expect.objectContaining({ status: 'not documented' }),
    expect.objectContaining({ undocumented: ['retry-after'], missing: [] }),
  ]);
  exchanges.splice(0);
  seen.clear();
});

function templatePath(name: keyof typeof operations): string {
  return operations[name].path.replace(/:\w+/g, '019b76da-a800-7f80-b447-2b4165543001');
}

it('Prism distinguishes bad requests from good ones by the document', async () => {
  const url = (await openPrism(true)) + templatePath('create_dashboard');
  const ask = async (body: unknown) => {
    const headers = { authorization: 'Bearer token', 'content-type': 'application/json' };
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await response.text()).includes('#UNPROCESSABLE_ENTITY');
  };
  for (const name of ['', ' ', '\n', 'a\0b', '\ufeffa', 'n'.repeat(256)]) expect(await ask({ name }), JSON.stringify(name)).toBe(true);
  for (const name of ['Operations', ' a ', 'a\ufeff', 'é'.repeat(255)]) expect(await ask({ name }), JSON.stringify(name)).toBe(false);
});

it('finds no violation in any response of the contract suite', async () => {
  const vitest = join(checkout, 'node_modules/vitest/vitest.mjs');
  const suite = await run(process.execPath, [vitest, 'run', 'test/contract'], { TEST_WITNESS: addressOf(witness) }, checkout);
  expect(suite.code, suite.out.slice(suite.out.indexOf('Failed Tests'))).toBe(0);
  expect(violations.slice(0, 5)).toEqual([]);
  console.log(`Prism: ${exchanges.length} exchanges, ${seen.size} pairs of operation and status, ${violations.length} violations`);
  expect(exchanges.length).toBeGreaterThan(500);
  for (const name of Object.keys(operations)) {
    for (const status of [401, 404]) expect(seen).toContain(`${name} ${status}`);
    expect(
      [...seen].some((pair) => new RegExp(`^${name} 20[014]$`).test(pair)),
      name,
    ).toBe(true);
  }
});
