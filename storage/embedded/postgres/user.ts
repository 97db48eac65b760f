import { spawnSync } from 'node:child_process';
import { chownSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresBinaries } from './binaries.ts';

/** How to start a Postgres program: as a user, or through a command in front. */
export interface RunAs {
  uid?: number;
  gid?: number;
  prefix: string[];
  /** Owner of the server's files if root creates them. */
  owner?: { uid: number; gid: number };
}

const NOBODY = 65534;

/**
 * Chooses the user that runs Postgres, which refuses to run as root. An ordinary user runs it directly. Root runs it as the owner of the
 * data, or as "nobody" for new data. If that user cannot reach the directory (say, below /root), it gets the one capability that lets it
 * pass the parent directories.
 */
export function chooseUser(dir: string, binaries: PostgresBinaries): RunAs {
  if (process.getuid?.() !== 0) return { prefix: [] };
  const owner = statSync(dir);
  const uid = owner.uid === 0 ? NOBODY : owner.uid;
  const gid = owner.uid === 0 ? NOBODY : owner.gid;
  if (owner.uid === 0) changeOwner(dir, uid, gid);

  const plain: RunAs = { uid, gid, prefix: [], owner: { uid, gid } };
  if (canRun(plain, dir, binaries)) return plain;
  const setpriv = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...DAC_OVERRIDE];
  const able: RunAs = { prefix: setpriv, owner: { uid, gid } };
  if (canRun(able, dir, binaries)) return able;
  throw new Error(
    `Postgres does not run as root, and user ${uid} cannot reach ${dir} or the programs in ${binaries.postgres}: ` +
      'start this as an ordinary user, move the data directory, or set DATABASE_URL to a server of your own.',
  );
}

const DAC_OVERRIDE = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override'];

/** Gives a directory and its contents to the server's user, who must own the files that the server reads. We wrote all of them as root. */
function changeOwner(path: string, uid: number, gid: number): void {
  chownSync(path, uid, gid);
  for (const entry of readdirSync(path)) {
    const below = join(path, entry);
    const stat = lstatSync(below);
    if (stat.isSymbolicLink()) continue;
    if (stat.isDirectory()) changeOwner(below, uid, gid);
    else chownSync(below, uid, gid);
  }
}

/**
 * Whether that user can run Postgres. It is tried: enter and write the directory, read the shared files, load the program with its
 * libraries.
 */
function canRun(run_as: RunAs, dir: string, { postgres, share }: PostgresBinaries): boolean {
  const script = 'cd "$1" && test -w . && test -r "$2" && exec "$3" --version';
  const { command, args } = buildCommandAs(run_as, '/bin/sh', ['-c', script, 'sh', dir, share, postgres]);
  return spawnSync(command, args, { uid: run_as.uid, gid: run_as.gid, cwd: '/', stdio: 'ignore' }).status === 0;
}

/** Builds the command line that runs a program as that user; the caller sets `uid` and `gid`. */
export function buildCommandAs(
  { prefix }: RunAs,
  program: string,
  args: string[],
): { command: string; args: string[] } {
  const [first, ...before] = prefix;
  return first === undefined ? { command: program, args } : { command: first, args: [...before, program, ...args] };
}
