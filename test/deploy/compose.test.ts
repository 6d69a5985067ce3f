import { readFileSync } from 'node:fs';
import { maxHeaderSize } from 'node:http';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/platform/packageroot.ts';
import { normalizeAddress } from '../../src/transport/http/addresses.ts';
import { command, services } from '../support/compose.ts';

const read = (path: string) => readFileSync(new URL(path, packageRoot), 'utf8');
const names = Object.keys(services);

test('compose.yaml has the services that these tests know', () => {
  expect(names).toEqual(['portico', 'balancer', 'postgres', 'redis']);
});

describe.each(names)('the service %s', (name) => {
  const lines = services[name] ?? [];
  const readKey = (key: string) => lines.flatMap((line) => (line.startsWith(`${key}:`) ? [line.slice(key.length + 1).trim()] : []));

  test('has no rights, an image that it cannot write to, and a bound to its memory', () => {
    expect(readKey('read_only')).toEqual(['true']);
    expect(readKey('cap_drop')).toEqual(['[ALL]']);
    expect(readKey('security_opt')).toEqual(["['no-new-privileges:true']"]);
    expect(readKey('mem_limit')).toEqual([expect.stringMatching(/^\d+[mg]$/)]);
    expect(readKey('privileged').concat(readKey('cap_add'))).toEqual([]);
  });

  test('has an image that may be pinned by its digest, which deploy/digests.sh finds out', () => {
    const [image = ''] = readKey('image');
    // The image built here has the digest of its base image.
    const from = image === 'portico' ? /^FROM (\S+) AS base$/m.exec(read('Dockerfile'))?.[1] : image;
    const [, tag, variable] = /^(\w+:[\w.-]+)\$\{(\w+_DIGEST)(?::-)?\}$/.exec(from ?? '') ?? [];
    expect([image, tag, variable]).toEqual([image, expect.any(String), expect.any(String)]);
    expect(read('deploy/digests.sh')).toContain(`\npin ${variable} ${tag}\n`);
    if (image === 'portico') {
      expect(read('Dockerfile')).toContain(`ARG ${variable}=\n`);
      expect(read('compose.yaml')).toContain(`args: { ${variable}: '\${${variable}:-}' }`);
    }
  });

  test('keeps logs that are bounded: they share the disk with PostgreSQL', () => {
    expect(readKey('logging')).toEqual([expect.stringMatching(/^\{ driver: local, options: \{ max-size: \d+m, max-file: '\d+' \} \}$/)]);
  });

  test('shows no password in what it is started with', () => {
    expect(command(name)).not.toMatch(/\$\{\w*PASSWORD/);
    expect(readKey('healthcheck').join('')).not.toMatch(/PASSWORD|AUTH/);
  });
});

test('the commands of compose.yaml write only to folders that are writable after a restart, too', () => {
  // A restarted container has the folders that its first start created, as root's: a tmpfs on one takes the folder's mode.
  const ofImages = ['/tmp', '/var/run/postgresql', '/data'];
  const mounted = Object.values(services).flatMap((lines) =>
    lines.flatMap((line) => /^tmpfs: \[(.*)\]$/.exec(line)?.[1]?.replaceAll("'", '').split(', ') ?? []),
  );
  expect(mounted).not.toEqual([]);
  expect(mounted.filter((mount) => !ofImages.includes(mount))).toEqual(['/run/redis:mode=1777']);
});

test('`docker compose up --wait` waits until the balancer serves, too', () => {
  const checked = names.filter((name) => services[name]?.some((line) => line.startsWith('healthcheck:')));
  // The image of Portico has its own.
  expect(checked).toEqual(names.filter((name) => name !== 'portico'));
  expect(read('Dockerfile')).toContain('HEALTHCHECK');
  const port = /\/dev\/tcp\/127\.0\.0\.1\/(\d+)/.exec(services.balancer?.join('\n') ?? '')?.[1];
  expect(read('deploy/haproxy.cfg')).toContain(`\n  bind 127.0.0.1:${port}\n  monitor-uri /\n`);
});

describe('a response of deploy/haproxy.cfg itself', () => {
  const config = read('deploy/haproxy.cfg');

  test('is JSON of v1 with a status of v1, also for malformed and slow requests', () => {
    const files = [...config.matchAll(/^ {2}errorfile (\d+) (\S+)$/gm)].map(([, status, file = '']) => [status, file] as const);
    expect(files.map(([status]) => status)).toEqual(['400', '408', '414', '422', '431']);
    // HAProxy finds them beside its configuration.
    expect(config).toContain('\n  default-path config\n');
    for (const [, file] of files) {
      expect(services.balancer?.join('\n')).toContain(`- ./deploy/${file}:/usr/local/etc/haproxy/${file}:ro`);
      const [head = '', body = ''] = read(`deploy/${file}`).split('\r\n\r\n');
      expect(head.split('\r\n')).toEqual(
        expect.arrayContaining(['HTTP/1.1 400 Bad Request', 'Content-Type: application/json', `Content-Length: ${body.length}`]),
      );
      const detail = expect.stringMatching(/\.$/);
      expect(JSON.parse(body)).toEqual({ detail, code: 'invalid_request', error: JSON.parse(body).detail });
    }
  });

  test('is logged as JSON, whatever characters a path has', () => {
    expect(config.match(/^ {2}log-format .*$/gm)).toEqual([expect.stringContaining("'%{+json}o ")]);
    // By the id of the response, the lines of a replica are found.
    expect(config).toMatch(/^ {2}log-format .* %\(request_id\)\[var\(txn\.request_id\)\]'$/m);
    expect(config.slice(config.indexOf('\nfrontend public\n'))).toMatch(
      /^ {2}http-response set-var\(txn\.request_id\) res\.hdr\(X-Request-Id\)$/m,
    );
    // A line of the default length, 1024, would lose the end of a long path, and with it the end of the JSON.
    expect(config).toMatch(/^ {2}log stdout len 4096 /m);
  });
});

test('deploy/nginx.conf makes JSON of v1 of its own errors, with a status of v1', () => {
  const config = read('deploy/nginx.conf');
  const answers = [...config.matchAll(/^ {4}return (\d+) '(.*)';$/gm)].map(([, status, body = '']) => [status, JSON.parse(body)] as const);
  expect(answers.map(([status, { code }]) => [status, code])).toEqual([
    ['400', 'invalid_request'],
    ['404', 'not_found'],
    ['503', 'service_unavailable'],
  ]);
  for (const [, { detail, error }] of answers) expect([detail, error]).toEqual([expect.stringMatching(/\.$/), detail]);
  expect(config.match(/error_page .*;/g)).toEqual([
    'error_page 418 = @sockets;',
    'error_page 400 405 413 414 494 501 505 =400 /-/invalid;',
    'error_page 404 /-/missing;',
    'error_page 500 502 503 504 =503 /-/unavailable;',
  ]);
  // Without it the page of nginx for 502 would answer a WebSocket, whose location is an error page itself.
  expect(config).toMatch(/\n {2}location \/ \{[^}]*recursive_error_pages on;/);
  // By HTTP/2 the length of a body is compared in this location, too: the page of nginx for 413 would take its place.
  expect(config).toMatch(/location = \/-\/invalid \{[^}]*client_max_body_size 0;/);
});

test('deploy/nginx.conf logs JSON, with the id by which the lines of a replica are found', () => {
  const [, format = ''] = /^log_format portico escape=json\n {2}'(.*)';$/m.exec(read('deploy/nginx.conf')) ?? [];
  expect(JSON.parse(format)).toMatchObject({ path: '$portico_path', request_id: '$sent_http_x_request_id' });
  // Its lines about a replica that is away have the query, with the ticket of a WebSocket.
  expect(read('deploy/nginx.conf')).toMatch(/^ {2}error_log \S+ crit;$/m);
});

test('deploy/nginx.conf offers a new WebSocket to the next replica if one refuses it as it is about to stop', () => {
  const config = read('deploy/nginx.conf');
  expect(config).toMatch(/\n {4}if \(\$http_upgrade ~\* \^websocket\$\) \{\n {6}return 418;/);
  const [, sockets] = /\n {2}location @sockets \{([^}]*)\}/.exec(config) ?? [];
  expect(sockets).toMatch(/proxy_next_upstream error timeout http_503;\n {4}proxy_pass http:\/\/portico_sockets;/);
  // A replica is not taken out for a 503 to one client.
  const [, upstream] = /\nupstream portico_sockets \{([^}]*)\}/.exec(config) ?? [];
  expect(upstream?.match(/server .*;/g)).toEqual(['server 10.0.0.11:4000 max_fails=0;', 'server 10.0.0.12:4000 max_fails=0;']);
  // Other requests are repeated only where no response came.
  expect(config.match(/proxy_next_upstream/g)?.length).toBe(1);
});

test('deploy/haproxy.cfg sends requests to replicas of which none passes its check, rather than to none', () => {
  const config = read('deploy/haproxy.cfg');
  // The first rule that applies decides.
  expect(/^ {2}use_backend .*$/m.exec(config)?.[0]).toBe('  use_backend unchecked if { nbsrv(requests) eq 0 }');
  const unchecked = config.split(/^backend /m).find((backend) => backend.startsWith('unchecked\n'));
  expect(unchecked).toMatch(/^ {2}default-server no-check init-state up$/m);
  // A write is repeated nowhere: it may have been carried out.
  const repeating = config.split(/^backend /m).filter((backend) => backend.includes('retry-on'));
  for (const backend of repeating) expect(backend).toContain('http-request disable-l7-retry unless { method GET HEAD OPTIONS }');
  expect(repeating.length).toBe(2);
});

test('deploy/haproxy.cfg takes headers as long and as many as a replica does', () => {
  // Those of the client, and three that HAProxy adds.
  expect(read('deploy/haproxy.cfg')).toMatch(/^ {2}tune\.http\.maxhdr 203$/m);
  const [, bufferBytes] = /^ {2}tune\.bufsize (\d+)$/m.exec(read('deploy/haproxy.cfg')) ?? [];
  // HAProxy keeps 1 KiB of a buffer free for the headers that it adds.
  expect(Number(bufferBytes) - 1_024).toBeGreaterThan(maxHeaderSize);
});

describe('the connections of deploy/haproxy.cfg', () => {
  const config = read('deploy/haproxy.cfg');
  const numbers = (pattern: RegExp, text = config) => [...text.matchAll(pattern)].map(([, number]) => Number(number));
  const [inAll = 0, ofFrontend = 0] = numbers(/^ {2}maxconn (\d+)$/gm);
  const toServers = numbers(/^ {2}server-template portico \d+ portico:4000 maxconn (\d+)$/gm);
  const toReplica = toServers.reduce((sum, number) => sum + number, 0);
  const replicas = Number(/replicas: (\d+)/.exec(read('compose.yaml'))?.[1]);
  const most = Number(/MAX_CONNECTIONS: (\d+)/.exec(read('compose.yaml'))?.[1]);

  test('are counted by the networks by which a replica counts clients', () => {
    expect(config).toContain('\n  stick-table type ipv6 ');
    const [, four, six] = /^ {2}tcp-request connection track-sc0 src,ipmask\((\d+),(\d+)\)$/m.exec(config) ?? [];
    expect([normalizeAddress('198.51.100.7'), four]).toEqual(['198.51.100.7', '32']);
    expect(normalizeAddress('2001:db8:1:2:3:4:5:6')).toBe(`2001:db8:1:2::/${six}`);
  });

  test('are bounded in all, and each has its files', () => {
    expect([inAll > 0, ofFrontend]).toEqual([true, inAll]);
    const [files = 0] = numbers(/fd-hard-limit (\d+)/g);
    expect(files).toBeGreaterThan(2 * inAll + 1_000);
    expect(services.balancer).toContain(`ulimits: { nofile: ${files} }`);
  });

  test('fit into the connection limits of the replicas, with room for its health checks', () => {
    expect(toServers.length).toBe(config.match(/server-template/g)?.length);
    expect(toReplica).toBeLessThan(most);
    expect(replicas * toReplica).toBeGreaterThanOrEqual(inAll);
  });

  test('of one address are limited to a tenth of them', () => {
    const [each = 0] = numbers(/tcp-request connection reject if \{ sc0_conn_cur gt (\d+) \}/g);
    expect(each).toBeGreaterThan(0);
    expect(each).toBeLessThanOrEqual(inAll / 10);
    // By HTTP/2, one connection would carry a hundred requests.
    expect(config).toMatch(/^ {2}option disable-h2-upgrade$/m);
  });

  test('of one address may hold at most as many requests as a replica takes at once', () => {
    const [requests = 0] = numbers(/^ {2}http-request deny deny_status 503 if \{ sc1_conn_cur gt (\d+) \}$/gm);
    expect(requests).toBeGreaterThan(0);
    expect(requests).toBeLessThanOrEqual(Math.min(...toServers));
    const [, table] = /^ {2}http-request track-sc1 src,ipmask\(32,64\) table (\w+) unless/m.exec(config) ?? [];
    expect(config.split(/^backend /m).find((backend) => backend.startsWith(`${table}\n`))).toContain('\n  stick-table type ipv6 ');
    expect(config).toMatch(/^ {2}option http-buffer-request$/m);
  });
});
