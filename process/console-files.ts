/**
 * Folders of the console (docs/decisions/0035-browser-sessions.md). Each build is a folder of `console-dist`, named by its key; `current.json`
 * names the one that is served, so that a process sees all of a build or nothing of it. The folder is not in git.
 */
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

/** The repository, or the folder of the image. */
export const ROOT = join(import.meta.dirname, '..');

/** The build that is served. */
export type ConsoleBuild = {
  /** Name of its folder: hash of everything that it was made of. */
  readonly key: string;
  /** Sources outside of `console/` that it was made of, relative to the root. */
  readonly sources: readonly string[];
};

export function getBuildFolder(root: string): string {
  return join(root, 'console-dist');
}

/** The finished build; undefined without one. */
export function readConsoleBuild(root: string): ConsoleBuild | undefined {
  try {
    const build: ConsoleBuild = JSON.parse(readFileSync(join(getBuildFolder(root), 'current.json'), 'utf8'));
    return existsSync(join(getBuildFolder(root), build.key, 'index.html')) ? build : undefined;
  } catch {
    return undefined;
  }
}

/** Folder with the files of the finished build; undefined without one. */
export function findConsoleFolder(root: string): string | undefined {
  const build = readConsoleBuild(root);
  return build && join(getBuildFolder(root), build.key);
}

/** Whether the build was made of the present sources and packages. */
export function isConsoleCurrent(root: string): boolean {
  const build = readConsoleBuild(root);
  return build !== undefined && build.key === computeBuildKey(root, build.sources);
}

export function hasConsoleSources(root: string): boolean {
  return existsSync(join(root, 'console', 'index.html'));
}

export function canWriteBuild(root: string): boolean {
  const folder = getBuildFolder(root);
  try {
    accessSync(existsSync(folder) ? folder : root, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const KEY_LENGTH = 20;

/** Hash of the sources, by path and content, and of the locked packages. */
export function computeBuildKey(root: string, sources: readonly string[]): string {
  const own = readdirSync(join(root, 'console'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    // Made of the API for the type checker; a build has no types.
    .filter((path) => !path.endsWith('.d.ts'));
  const hash = createHash('sha256');
  for (const path of [...own, ...sources, 'package-lock.json'].sort()) {
    const file = join(root, path);
    const content = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex').slice(0, KEY_LENGTH);
}
