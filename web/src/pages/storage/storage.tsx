import { toPage } from '../../parts/address.ts';
import { Empty } from '../../parts/states.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Backups, Snapshots, Volumes } from './disks.tsx';
import { Vpcs } from './networks.tsx';
import { SshKeys } from './ssh-keys.tsx';

const kinds = [
  ['volumes', 'Volumes', Volumes],
  ['snapshots', 'Snapshots', Snapshots],
  ['backups', 'Backups', Backups],
  ['vpcs', 'VPCs', Vpcs],
  ['ssh-keys', 'SSH keys', SshKeys],
] as const;

export default function Storage({ projectId, kind }: { projectId: string; kind: string }) {
  const [, , List] = kinds.find(([name]) => name === kind) ?? [];
  return (
    <>
      <h1>Storage</h1>
      <Tabs
        label="Storage"
        current={kind}
        tabs={kinds.map(([name, title]) => ({ name, title, to: toPage(projectId, `storage/${name}`) }))}
      />
      {List ? (
        <List projectId={projectId} />
      ) : (
        <Empty title="There is no such list">
          <p>Choose one of those above.</p>
        </Empty>
      )}
    </>
  );
}
