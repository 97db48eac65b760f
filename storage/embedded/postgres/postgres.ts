import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { platform } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { syncDirectory } from '../../foundation/sync-directory.ts';
import {
  buildStdio,
  type Child,
  type ChildServer,
  type Log,
  type PartOptions,
  startChild,
} from '../clickhouse/part.ts';
import { endLeftOver, readProcessMark } from '../left-over.ts';
import { findPostgresBinaries, type PostgresBinaries } from './binaries.ts';
import { buildCommandAs, chooseUser, type RunAs } from './user.ts';

const USER = 'farthing';
const DATABASE = 'farthing';
const READY_MS = 60_000; // Recovery after a crash replays the log of up to one checkpoint.
const STOP_MS = 30_000;

/** Longest path of a socket that every system accepts, without the name that Postgres gives the file. */
const SOCKET_DIRECTORY_MAX_BYTES = 85;

/**
 * Starts the real Postgres with its data in `dir`; initializes it the first time. The server of a killed predecessor is stopped, and its
 * data are recovered. The URL names a socket in the data directory, because a statement over loopback costs both sides a third more CPU.
 * Loopback on a free port is for other programs, and for a directory that cannot have a socket.
 */
export async function startPostgres({ dir, log, lock_fd }: PartOptions): Promise<ChildServer> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const home = realpathSync(dir);
  const binaries = findPostgresBinaries();
  const run_as = chooseUser(home, binaries);
  const data = join(home, 'data');
  const password = loadPassword(home, run_as);
  if (!existsSync(data)) initialise(home, { binaries, run_as, lock_fd });
  await stopLeftOver(data, log);

  const { child, port, hasSocket } = await startServer({ data, binaries, run_as, log, lock_fd });
  const watchdog = stopWithUs(child.pid, log);
  const url = `postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}${hasSocket ? `?host=${encodeURIComponent(data)}` : ''}`;
  const stop = async () => {
    child.expectExit();
    watchdog.release();
    await endProcess(child);
  };
  try {
    await createDatabase(url);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, pid: child.pid, stop, onExit: child.onExit, unref: child.unref };
}

/**
 * Loads the password, or creates a random one in a file that only the server's user may read: other users can reach the loopback interface,
 * too. The file is synced to the disk before the server gets the password, so that a power loss locks no user out.
 */
function loadPassword(home: string, run_as: RunAs): string {
  const file = join(home, 'password');
  if (!existsSync(file)) {
    writeFileSync(`${file}.new`, randomBytes(24).toString('hex'), { mode: 0o600, flush: true });
    giveTo(`${file}.new`, run_as);
    renameSync(`${file}.new`, file);
    syncDirectory(home);
  }
  // A copied or restored password file may have other permissions.
  chmodSync(file, 0o600);
  return readFileSync(file, 'utf8').trim();
}

type InitialiseOptions = { binaries: PostgresBinaries; run_as: RunAs; lock_fd: number | undefined };

/**
 * Creates the database files in a temporary directory and renames that, so that an interrupted run never leaves an incomplete directory
 * under the final name.
 */
function initialise(home: string, { binaries, run_as, lock_fd }: InitialiseOptions): void {
  const draft = join(home, 'data.new');
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  giveTo(draft, run_as);
  const args = [
    `--pgdata=${draft}`,
    `--username=${USER}`,
    `--pwfile=${join(home, 'password')}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // Text sorts by bytes everywhere; only case conversion uses Unicode.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--data-checksums',
  ];
  const initdb = buildCommandAs(run_as, binaries.initdb, args);
  try {
    execFileSync(initdb.command, initdb.args, {
      cwd: '/',
      env: SERVER_ENV,
      stdio: buildStdio(lock_fd),
      uid: run_as.uid,
      gid: run_as.gid,
    });
  } catch (error) {
    const error_text = String((error as { stderr?: Buffer }).stderr ?? error).trim();
    const hint = /could not look up effective user/.test(error_text)
      ? ' (it needs a user with a name in /etc/passwd)'
      : '';
    throw new Error(`Postgres could not be initialised in ${home}: ${error_text}${hint}`, { cause: error });
  }
  renameSync(draft, join(home, 'data'));
  syncDirectory(home);
}

/** Gives the file to the server's user, if root has created it. */
function giveTo(path: string, { owner }: RunAs): void {
  if (owner) chownSync(path, owner.uid, owner.gid);
}

/** Environment of the server. It gets none of our variables, so that no PG* setting changes it and no secret leaks into it. */
const SERVER_ENV = { PATH: '/usr/bin:/bin', LANG: 'C', LC_ALL: 'C', TZ: 'UTC' };

interface EmbeddedPostgresOptions {
  data: string;
  binaries: PostgresBinaries;
  run_as: RunAs;
  log: Log;
  lock_fd: number | undefined;
}

/**
 * Starts the server. If another process takes the port before the server binds it, another port is tried. If backends of a killed server
 * have not ended yet, the start is retried. A file system that refuses sockets gets none.
 */
async function startServer(
  options: EmbeddedPostgresOptions,
): Promise<{ child: Child; port: number; hasSocket: boolean }> {
  const until = performance.now() + READY_MS;
  removeSockets(options.data);
  // The setting is a list, in which these characters have a meaning.
  let hasSocket = Buffer.byteLength(options.data) <= SOCKET_DIRECTORY_MAX_BYTES && !/[,"]/.test(options.data);
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const child = spawnServer({ port, hasSocket }, options);
    try {
      await child.waitForLine(/database system is ready to accept connections/, READY_MS);
      return { child, port, hasSocket };
    } catch (error) {
      if (!child.hasExited()) await endProcess(child);
      const { message } = error as Error;
      const hasBackends = /still in use/.test(message) && performance.now() < until;
      const isSocketRefused = hasSocket && /could not create any Unix-domain sockets/.test(message);
      const isPortTaken = /could not bind|could not create any TCP\/IP sockets/.test(message) && attempt < 5;
      if (!hasBackends && !isPortTaken && !isSocketRefused) throw error;
      if (isSocketRefused) hasSocket = false;
      if (hasBackends) await new Promise((resolveSoon) => setTimeout(resolveSoon, 200));
    }
  }
}

/** Removes the sockets of killed servers. The next server has another port, and so another name of its socket. */
function removeSockets(data: string): void {
  for (const name of readdirSync(data)) if (name.startsWith('.s.PGSQL.')) rmSync(join(data, name), { force: true });
}

function spawnServer(
  { port, hasSocket }: { port: number; hasSocket: boolean },
  { data, binaries, run_as, log, lock_fd }: EmbeddedPostgresOptions,
): Child {
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: hasSocket ? data : '',
    // The value is that of docker-compose.yml: each of several processes may use all connections of its pool at once.
    max_connections: 300,
    fsync: 'on',
    synchronous_commit: 'on',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_destination: 'stderr',
    logging_collector: 'off',
    // A failed statement is reported to its caller; its values do not belong in a log.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = buildCommandAs(run_as, binaries.postgres, ['-D', data, ...options]);
  return startChild({ name: 'Postgres', ...server, env: SERVER_ENV, log, lock_fd, uid: run_as.uid, gid: run_as.gid });
}

function freePort(): Promise<number> {
  return new Promise((resolvePort, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolvePort(port));
    });
  });
}

async function createDatabase(url: string): Promise<void> {
  const client = new pg.Client({
    connectionString: url.replace(/[^/]*$/, 'postgres'),
    connectionTimeoutMillis: READY_MS,
  });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE "${DATABASE}"`);
  } finally {
    await client.end();
  }
}

/** Ends the server by a fast shutdown. If that takes too long, an immediate shutdown follows, from which the next start recovers. */
async function endProcess(child: Child): Promise<void> {
  for (const [signal, patience_ms] of [
    ['SIGINT', STOP_MS],
    ['SIGQUIT', 10_000],
    ['SIGKILL', 10_000],
  ] as const) {
    if (child.hasExited()) return;
    child.process.kill(signal);
    const ended = await child.waitForExit(patience_ms).then(
      () => true,
      () => false,
    );
    if (ended) return;
  }
}

/**
 * Stops a leftover server. Servers that hold the lock of the stores have ended already, but a server of a version without that lock may
 * survive a kill -9 of its owner. A pid file of an unrelated process is removed. A pid file of a dead process is not removed, because
 * Postgres checks more than the pid before it takes over.
 */
async function stopLeftOver(data: string, log: Log): Promise<void> {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
  if (!(pid > 0) || !isAlive(pid)) return;
  if (!isServerProcess(pid, data)) return rmSync(file, { force: true });
  await endLeftOver(readProcessMark(pid), { name: 'Postgres', signals: ENDING, log });
}

/**
 * Signals of a shutdown, in order. A fast one writes all dirty pages, which takes long under load; after an immediate one the next start
 * recovers.
 */
const ENDING = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 10_000],
] as const;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function isServerProcess(pid: number, data: string): boolean {
  try {
    if (platform() !== 'linux') {
      return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).includes(data);
    }
    return readlinkSync(`/proc/${pid}/cwd`) === data;
  } catch {
    return false;
  }
}

/** Starts a shell that stops the server if this process is killed: the shell waits on a pipe from us, which closes then. */
function stopWithUs(pid: number, log: Log): { release(): void } {
  const shell = spawn('/bin/sh', ['-c', 'read _ || kill -INT "$0"', String(pid)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.on('error', (error) => log(`no watchdog for Postgres: ${error.message}`));
  shell.stdin.on('error', () => {});
  shell.unref();
  (shell.stdin as Socket).unref();
  return { release: () => shell.stdin.end('\n') };
}
