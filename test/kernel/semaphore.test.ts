import { expect, it } from 'vitest';
import { KeyedSemaphore, type Permit } from '../../src/kernel/semaphore.ts';
import { findMapOf } from '../support/maps.ts';

it('an owner is forgotten with the last of their operations', () => {
  const semaphore = new KeyedSemaphore(1);
  const permits: Permit[] = [];
  const acquire = () => void permits.push(semaphore.acquire('somebody', () => 0));
  const owners = findMapOf('somebody', acquire);
  acquire();
  permits[0]?.release();
  expect([...owners.keys()]).toEqual(['somebody']);
  permits[1]?.release();
  expect([...owners.keys()]).toEqual([]);
});
