import { randomUUID } from 'node:crypto';
import { hashSecret } from '../../src/access/apikey.ts';
import { deleteEndedApiKeys } from '../../src/accounts/service.ts';
import { deleteOldTaskCounters } from '../../src/compute/overview.ts';
import {
  claimSession,
  deleteOldRecords,
  endSilentSessions,
  findConsole,
  insertSession,
  isSessionRunning,
  readClock,
  readHandover,
  readSnapshots,
  recordAttachment,
  saveEnds,
  saveHandover,
  saveSessions,
  takeSession,
} from '../../src/consoles/store.ts';
import { deleteOldStoredResponses } from '../../src/graph/storedresponse.ts';
import { loadEntries } from '../../src/notifications/entries.ts';
import { findFork, findReplaced, loadEnd, loadLastSequence } from '../../src/notifications/log.ts';
import { loadPositions } from '../../src/notifications/positions.ts';
import { countSingleReads, listSingleReads, loadReadState, loadVersionBefore } from '../../src/notifications/readstate.ts';
import { pruneNotifications } from '../../src/notifications/retention.ts';
import type { Database } from '../../src/platform/database.ts';
import { consumeTicket, deleteOldTickets, redeemTicket } from '../../src/tickets/service.ts';

type Work = readonly [name: string, run: () => Promise<unknown>];

/** The statements of feeds, tickets and periodic jobs, which no operation of the API sends. */
export function listBackgroundWork(database: Database, reader: { readonly projectId: string; readonly userId: string }): Work[] {
  const { projectId } = reader;
  const marks = [{ projectId, sequence: 20, id: randomUUID() }];
  return [
    ['loadLastSequence', () => loadLastSequence(database, projectId)],
    ['loadEnd', () => loadEnd(database, projectId)],
    ['findReplaced', () => findReplaced(database, marks)],
    ['findFork', () => findFork(database, projectId, marks)],
    ['loadEntries', () => loadEntries(database, projectId, { after: 20, limit: 50, maxBytes: 500_000 })],
    ['loadReadState', () => loadReadState(database, { ...reader, sinceVersion: 0 })],
    ['countSingleReads', () => countSingleReads(database, { ...reader, sinceVersion: 0, upToVersion: 9 })],
    ['loadVersionBefore', () => loadVersionBefore(database, { ...reader, position: 9, sinceVersion: 9 })],
    ['listSingleReads', () => listSingleReads(database, { ...reader, sinceVersion: 0, upToVersion: 9, after: 0 })],
    ['loadPositions', () => loadPositions(database, [projectId], [reader])],
    ['redeemTicket', () => redeemTicket({ database, userDatabases: { of: () => database } }, randomUUID(), async () => {})],
    ['consumeTicket', () => consumeTicket(database, hashSecret(randomUUID()))],
    ['deleteEndedApiKeys', () => deleteEndedApiKeys(database)],
    ['deleteOldTickets', () => deleteOldTickets(database)],
    ['deleteOldStoredResponses', () => deleteOldStoredResponses(database)],
    ['deleteOldTaskCounters', () => deleteOldTaskCounters(database)],
    ['pruneNotifications', () => pruneNotifications(database, 36_500)],
  ];
}

/** The statements of consoles, with those of their jobs. */
export function listConsoleWork(database: Database, place: { projectId: string; userId: string; instanceId: string }): Work[] {
  const [id, processId] = [randomUUID(), randomUUID()];
  const session = { ...place, id, processId, instanceName: 'x', userEmail: 'x', kind: 'serial', clientAddress: 'x' } as const;
  const tally = { id, bytesIn: 1, bytesOut: 2 };
  return [
    ['findConsole', () => findConsole(database, place.projectId, place.instanceId)],
    ['insertSession', () => insertSession(database, session, 10)],
    ['claimSession', () => claimSession(database, session)],
    ['recordAttachment', () => recordAttachment(database, session, 10)],
    ['saveSessions', () => saveSessions(database, processId, [{ ...tally, isDetached: false }])],
    ['readSnapshots', () => readSnapshots(database, [session])],
    ['saveHandover', () => saveHandover(database, processId, tally, { position: 2, scrollback: Buffer.alloc(32) })],
    ['readHandover', () => readHandover(database, id, [processId])],
    ['isSessionRunning', () => isSessionRunning(database, session)],
    ['takeSession', () => takeSession(database, processId, id)],
    ['saveEnds', () => saveEnds(database, processId, [{ ...tally, reason: 'idle', secondsAgo: 1 }])],
    ['deleteOldRecords', () => deleteOldRecords(database, 365)],
    ['readClock', () => readClock(database)],
    ['endSilentSessions', () => endSilentSessions(database, new Date())],
  ];
}
