import { expect, test } from 'vitest';
import { addOrganization, addUser, revokeUserKey } from '../../src/accounts/operatorcommands.ts';
import { setEndpoint } from '../../src/consoles/operatorcommands.ts';
import type { Database } from '../../src/platform/database.ts';
import { OperatorError } from '../../src/platform/operatorerror.ts';

/** Whatever is asked of it fails in another way than the values below. */
const noDatabase = {} as Database;
const instance = '019b76da-a800-7a53-8b0a-0d2b9a6f4c11';
const user = (email: string, name = 'x') => addUser(noDatabase, { email, name });
const organization = (currency: string) => addOrganization(noDatabase, { name: 'O', owner: 'owner@acme.example', currency });
const endpoint = (id: string, options: { kind: string; tcp?: string; unix?: string }) => setEndpoint(noDatabase, id, options);

test.each<[string, () => Promise<unknown>]>([
  ['nobody is not an e-mail address.', () => user('nobody')],
  ['The e-mail address cannot be used: Ensure this field has no more than 255 characters.', () => user(`${'x'.repeat(255)}@example.com`)],
  ['The name is empty.', () => user('nobody@new.example', ' ')],
  ['euro is not a currency code: three capital letters, such as EUR.', () => organization('euro')],
  ['sk-portico is not a UUID.', () => revokeUserKey(noDatabase, 'sk-portico')],
  ['vm-17 is not a UUID.', () => endpoint('vm-17', { kind: 'serial', tcp: 'host:1' })],
  ['spice is not a kind of console. Use one of: serial, vnc.', () => endpoint(instance, { kind: 'spice', tcp: 'host:1' })],
  ['Give either --tcp or --unix.', () => endpoint(instance, { kind: 'vnc' })],
  ['Give either --tcp or --unix.', () => endpoint(instance, { kind: 'vnc', tcp: 'host:1', unix: '/x' })],
  ['host:65536 is not a host and port.', () => endpoint(instance, { kind: 'vnc', tcp: 'host:65536' })],
  ['fd00::17:4555 is not a host and port.', () => endpoint(instance, { kind: 'vnc', tcp: 'fd00::17:4555' })],
  ['vm.sock is not an absolute path of at most 255 characters.', () => endpoint(instance, { kind: 'vnc', unix: 'vm.sock' })],
  [
    `/${'v'.repeat(255)} is not an absolute path of at most 255 characters.`,
    () => endpoint(instance, { kind: 'vnc', unix: `/${'v'.repeat(255)}` }),
  ],
  [`${'h'.repeat(256)}:1 is not a host and port.`, () => endpoint(instance, { kind: 'vnc', tcp: `${'h'.repeat(256)}:1` })],
])('%s', async (complaint, run) => {
  const failure: unknown = await run().catch((thrown: unknown) => thrown);
  expect(failure).toBeInstanceOf(OperatorError);
  expect(failure).toMatchObject({ message: complaint });
});
