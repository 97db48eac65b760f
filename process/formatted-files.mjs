// Which files the formatter is given, which rewrites them and shows what it would: never those of a data directory, which may lie anywhere
// (DATA_DIR), and holds passwords and what ClickHouse writes. Read by run.mjs, so it is plain JavaScript.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** What stands in a data directory while a service runs there, and what stays behind it. */
const MARKS = ['stores.json', 'farthing.lock', 'stores.lock', join('postgres', 'data'), join('clickhouse', 'data')];
/** What a data directory has besides: in the root it stands beside sources. */
const FOLDERS = ['postgres', 'clickhouse', 'log', 'identities'];
const KINDS = /\.(?:ts|mjs|json)$/;

/** All of the folder where no data directory is in it; else the files that are none of one. */
export function formattedFiles(root) {
  /** @type {{ files: string[], data: string[] }} */
  const found = { files: [], data: [] };
  collectFiles(root, '', found);
  if (found.data.length === 0) return ['.'];
  // Sources in the same folder as data are told apart by git alone.
  const tracked = tracks(root).filter((file) => found.data.some((folder) => file.startsWith(`${folder}/`)));
  return [...found.files, ...tracked];
}

function collectFiles(root, folder, found) {
  const isData = MARKS.some((mark) => existsSync(join(root, folder, mark)));
  if (isData && folder !== '') return found.data.push(folder);
  // Everything of the root is told by its name.
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
