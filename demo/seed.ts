import type { Prisma } from '../src/generated/prisma/client.ts';
import type { Database } from '../src/platform/database.ts';
import { backupOptionPriceRows, backupOptionRows, backupTrialRows, billingClientRows, billingServiceRows } from './backups.ts';
import { instanceRows } from './compute.ts';
import { dashboardRows } from './dashboards.ts';
import { memberReads, notificationRows, ownerReadThrough } from './notifications.ts';
import {
  organization,
  organizationMemberRows,
  organizationRows,
  project,
  projectMemberRows,
  projectRows,
  userRows,
  users,
} from './people.ts';
import { backupRows, snapshotRows, sshKeyRows, volumeRows, vpcRows } from './resources.ts';
import { taskRows } from './tasks.ts';

/**
 * Inserts the demo in one transaction, with times around `now`. Returns false and changes nothing if the demo is already
 * there. Throws if its ids, e-mail addresses or plans are taken by other rows.
 */
export async function seedDemo(database: Database, now = new Date()): Promise<boolean> {
  return database.prisma.$transaction(
    async (transaction) => {
      // If two replicas start together, the second waits here, and then finds the demo of the first.
      await transaction.$executeRaw`SELECT pg_advisory_xact_lock(7046029255)`;
      if (await hasDemo(transaction)) return false;
      await insertPeople(transaction, now);
      await insertCompute(transaction, now);
      await insertMessages(transaction, now);
      return true;
    },
    { maxWait: 5_000, timeout: 60_000 },
  );
}

/** Whether the demo is in the database. */
export async function hasDemo(database: Prisma.TransactionClient): Promise<boolean> {
  return (await database.organization.count({ where: { id: organization.id } })) > 0;
}

async function insertPeople(database: Prisma.TransactionClient, now: Date): Promise<void> {
  await database.user.createMany({ data: userRows(now) });
  await database.organization.createMany({ data: organizationRows(now) });
  await database.organizationMember.createMany({ data: organizationMemberRows(now) });
  await database.project.createMany({ data: projectRows(now) });
  await database.projectMember.createMany({ data: projectMemberRows(now) });
}

async function insertCompute(database: Prisma.TransactionClient, now: Date): Promise<void> {
  await database.backupOption.createMany({ data: backupOptionRows() });
  await database.backupOptionPrice.createMany({ data: backupOptionPriceRows() });
  await database.billingClient.createMany({ data: billingClientRows() });
  await database.billingService.createMany({ data: billingServiceRows() });
  await database.instance.createMany({ data: instanceRows(now) });
  await database.backupTrial.createMany({ data: backupTrialRows(now) });
  await database.volume.createMany({ data: volumeRows(now) });
  await database.snapshot.createMany({ data: snapshotRows(now) });
  await database.backup.createMany({ data: backupRows(now) });
  await database.vpc.createMany({ data: vpcRows(now) });
  await database.sshKey.createMany({ data: sshKeyRows(now) });
  await database.task.createMany({ data: taskRows(now) });
}

async function insertMessages(database: Prisma.TransactionClient, now: Date): Promise<void> {
  await database.dashboard.createMany({ data: dashboardRows(now) });
  await database.notification.createMany({ data: notificationRows(now) });
  await database.$executeRaw`
    SELECT mark_notifications_read(${project.id}::uuid, ${users.owner.id}::uuid, NULL, ${ownerReadThrough}::bigint)`;
  await database.$executeRaw`
    SELECT mark_notifications_read(${project.id}::uuid, ${users.member.id}::uuid, ${memberReads}::uuid[], NULL)`;
}
