import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/platform/packageroot.ts';

/**
 * A `docker` whose containers are files with their states. Like Compose, `ps --all` lists what `compose run` has started, too, and
 * `up --wait` fails where any container of the service is unhealthy.
 */
const docker = `#!/bin/sh
cd "$CONTAINERS"
case "$1 $2" in
  'compose build') ;;
  'compose rm') for name in $(grep -l exited *); do rm "$name"; done ;;
  'compose ps') case "$*" in *--all*) ls ;; *) grep -lxE 'running|unhealthy' * ;; esac ;;
  'compose config') printf 'services:\\n  portico:\\n    deploy:\\n      replicas: 2\\n' ;;
  'compose up')
    wanted=$(echo "$*" | sed 's/.*portico=\\([0-9]*\\).*/\\1/')
    number=$(grep -L task * | wc -l)
    while [ "$number" -lt "$wanted" ]; do number=$((number + 1)); echo running > "$RUN-$number"; done
    eval "$DURING_UP"
    case "$*" in *--wait*) if grep -qx unhealthy *; then exit 1; fi ;; esac ;;
  'exec '*) eval "$READINESS" ;;
  'stop '*) echo exited > "$2"; eval "$DURING_STOP" ;;
  'rm --force') rm "$3" ;;
  'rm '*) rm "$2" ;;
esac
`;

function openHost() {
  const folder = mkdtempSync(join(tmpdir(), 'portico-roll-'));
  const [containers, bin] = ['containers', 'bin'].map((name) => join(folder, name)) as [string, string];
  for (const path of [containers, bin]) mkdirSync(path);
  writeFileSync(join(bin, 'docker'), docker, { mode: 0o755 });
  // A second passes whenever somebody looks at the clock.
  writeFileSync(join(bin, 'sleep'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(join(bin, 'date'), '#!/bin/sh\necho >> "$CONTAINERS/../clock"\nwc -l < "$CONTAINERS/../clock"\n', { mode: 0o755 });
  const write = (name: string, state: string) => writeFileSync(join(containers, name), `${state}\n`);
  for (const name of ['old-1', 'old-2']) write(name, 'running');
  return {
    write,
    roll(run: string, env: Record<string, string> = {}) {
      const faults = { DURING_UP: ':', DURING_STOP: ':', READINESS: ':', ...env };
      const { status, stderr } = spawnSync('sh', [fileURLToPath(new URL('deploy/roll.sh', packageRoot))], {
        env: { PATH: `${bin}:${process.env.PATH}`, CONTAINERS: containers, RUN: run, ...faults },
        encoding: 'utf8',
      });
      return { status, stderr, containers: readdirSync(containers).sort() };
    },
  };
}

test('deploy/roll.sh replaces the replicas', () => {
  expect(openHost().roll('new')).toMatchObject({ status: 0, containers: ['new-3', 'new-4'] });
});

test('deploy/roll.sh replaces replicas that are broken, and awaits new ones that are ready later', () => {
  const host = openHost();
  host.write('old-2', 'unhealthy');
  const slow = 'echo asked >> ../questions; [ $(wc -l < ../questions) -gt 20 ]';
  expect(host.roll('new', { READINESS: slow })).toMatchObject({ status: 0, containers: ['new-3', 'new-4'] });
});

test.each([
  ['cannot be started', { DURING_UP: 'exit 1' }],
  ['exit once', { DURING_UP: 'echo exited > new-4' }],
  ['are not ready', { READINESS: 'exit 1' }],
  ['are awaited when it is interrupted', { DURING_UP: 'kill $PPID' }],
])('deploy/roll.sh removes the new replicas if they %s, and nothing else', (_, faults) => {
  const host = openHost();
  host.write('migrate', 'running task');
  const { status, containers, stderr } = host.roll('new', faults);
  expect({ status, containers }).toEqual({ status: 1, containers: ['migrate', 'old-1', 'old-2'] });
  expect(stderr).toContain('the old ones go on');
});

test('deploy/roll.sh ends with as many replicas as compose.yaml has, wherever it was killed before', () => {
  const host = openHost();
  expect(host.roll('one', { DURING_UP: 'kill -9 $PPID' }).containers).toEqual(['old-1', 'old-2', 'one-3', 'one-4']);
  expect(host.roll('two', { DURING_STOP: 'kill -9 $PPID' }).containers).toEqual(['old-1', 'old-2', 'one-3', 'one-4', 'two-5', 'two-6']);
  expect(host.roll('three')).toMatchObject({ status: 0, containers: ['three-6', 'three-7'] });
});
