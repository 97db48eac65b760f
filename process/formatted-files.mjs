// Selects the files for the formatter, which rewrites and prints them. It must never get those of a data directory,
// which contains passwords and files of ClickHouse. DATA_DIR may be any folder. run.mjs imports this file, so it is
// plain JavaScript.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Files by which a data directory is recognized, while a service runs in it or after the service has ended. */
const MARKS = ['stores.json', 'farthing.lock', 'stores.lock', join('postgres', 'data'), join('clickhouse', 'data')];
/** Folders of a data directory. If the repository itself is one, they lie beside its sources. */
const FOLDERS = ['postgres', 'clickhouse', 'log', 'identities'];
const KINDS = /\.(?:tsx?|mjs|json|css)$/;

/** All of the root if no data directory is in it; otherwise the files outside of data directories. */
export function formattedFiles(root) {
  /** @type {{ files: string[], data: string[] }} */
  const found = { files: [], data: [] };
  collectFiles(root, '', found);
  if (found.data.length === 0) return ['.'];
  // If data and sources are in the same folder, only git can distinguish them.
  const tracked = tracks(root).filter((file) => found.data.some((folder) => file.startsWith(`${folder}/`)));
  return [...found.files, ...tracked];
}

function collectFiles(root, folder, found) {
  const isData = MARKS.some((mark) => existsSync(join(root, folder, mark)));
  if (isData && folder !== '') return found.data.push(folder);
  // In the root, names decide which entries are data.
  if (isData) found.data.push('.');
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory() && !isLeft(entry.name, isData)) collectFiles(root, path, found);
    else if (entry.isFile() && KINDS.test(entry.name) && !MARKS.includes(path)) found.files.push(path);
  }
}

function isLeft(name, isData) {
  return name.startsWith('.') || name === 'node_modules' || (isData && FOLDERS.includes(name));
}

function tracks(root) {
  const { status, stdout } = spawnSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.split('\0').filter((file) => KINDS.test(file)) : [];
}
