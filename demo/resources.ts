import { createHash } from 'node:crypto';
import type { Prisma } from '../src/generated/prisma/client.ts';
import { type DemoInstance, fleet, foreignFleet } from './compute.ts';
import { demoId } from './identity.ts';
import { foreignProject, project } from './people.ts';
import { daysBefore } from './time.ts';

const present = [...fleet, ...foreignFleet].filter(({ status }) => status !== 'deleted');
const everySecond = present.filter((_, index) => index % 2 === 0);
const everyFourth = present.filter((_, index) => index % 4 === 1);
const backedUp = present.filter(({ dailyBackup }) => dailyBackup);

export function volumeRows(now: Date): Prisma.VolumeCreateManyInput[] {
  const attached = everySecond.map((instance, index) => ({
    ...attachedTo(instance, 'volume', `${instance.name}-data`, index),
    sizeGb: [50, 100, 250, 500][index % 4] ?? 50,
    created: daysBefore(now, instance.ageDays - 1),
  }));
  const name = 'archive-2025';
  const detached = { id: demoId(`volume/${name}`, attached.length), projectId: project.id, instanceId: null, name };
  return [...attached, { ...detached, sizeGb: 2_000, created: daysBefore(now, 4) }];
}

export function snapshotRows(now: Date): Prisma.SnapshotCreateManyInput[] {
  return everyFourth.map((instance, index) => ({
    ...attachedTo(instance, 'snapshot', `${instance.name}-before-upgrade`, index),
    sizeGb: 20 + ((index * 13) % 60),
    created: daysBefore(now, 40 - index * 2),
  }));
}

/** Backups of the last three nights, for each instance with daily backups. */
export function backupRows(now: Date): Prisma.BackupCreateManyInput[] {
  const nights = [3, 2, 1].flatMap((daysAgo) => backedUp.map((instance) => ({ instance, daysAgo })));
  return nights.map(({ instance, daysAgo }, index) => ({
    ...attachedTo(instance, 'backup', `${instance.name}-${daysBefore(now, daysAgo).toISOString().slice(0, 10)}`, index, `${daysAgo}`),
    sizeGb: 30 + ((index * 17) % 90),
    created: daysBefore(now, daysAgo),
  }));
}

export function vpcRows(now: Date): Prisma.VpcCreateManyInput[] {
  return [
    { id: demoId('vpc/frontend', 0), projectId: project.id, name: 'frontend', cidr: '10.10.0.0/20', created: daysBefore(now, 410) },
    { id: demoId('vpc/backend', 1), projectId: project.id, name: 'backend', cidr: '10.20.0.0/20', created: daysBefore(now, 410) },
    { id: demoId('vpc/build', 2), projectId: project.id, name: 'build', cidr: '10.30.0.0/22', created: daysBefore(now, 150) },
    { id: demoId('vpc/shop', 3), projectId: foreignProject.id, name: 'shop', cidr: '172.16.0.0/22', created: daysBefore(now, 330) },
  ];
}

export function sshKeyRows(now: Date): Prisma.SshKeyCreateManyInput[] {
  const owners = [
    { name: 'olivia@thinkpad', projectId: project.id },
    { name: 'anton@desk', projectId: project.id },
    { name: 'mira@laptop', projectId: project.id },
    { name: 'deploy@ci', projectId: project.id },
    { name: 'oona@studio', projectId: foreignProject.id },
  ];
  return owners.map((owner, index) => ({
    ...owner,
    id: demoId(`ssh-key/${owner.name}`, index),
    ...publicKey(owner.name),
    created: daysBefore(now, 300 - index * 40),
  }));
}

function attachedTo(instance: DemoInstance, kind: string, name: string, index: number, key = '') {
  return { id: demoId(`${kind}/${instance.name}/${key}`, index), projectId: instance.projectId, instanceId: instance.id, name };
}

/** A public key line in OpenSSH's format, with the fingerprint that OpenSSH would show. No private key exists. */
function publicKey(name: string): { publicKey: string; fingerprint: string } {
  const type = Buffer.from('ssh-ed25519');
  const blob = Buffer.concat([Buffer.from([0, 0, 0, type.length]), type, Buffer.from([0, 0, 0, 32]), sha256(Buffer.from(name))]);
  return {
    publicKey: `${type} ${blob.toString('base64')} ${name}`,
    fingerprint: `SHA256:${sha256(blob).toString('base64').replace(/=+$/, '')}`,
  };
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}
