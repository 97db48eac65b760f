// The module hooks that typescript.mjs registers. With Node 20 they run in the thread of the loader.
// A start of the service loads 1,200 files of ours. Resolving and stripping all of them at each start took half of its CPU.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
// Cache of stripped files from earlier starts. It is empty in an image whose code belongs to another user.
const CACHE = fileURLToPath(new URL('../node_modules/.cache/farthing/', import.meta.url));
const HASH_LENGTH = 64;

let transformSync;
let canWrite = true;

/** The `resolve` of Node's module hooks. A relative path to a file of ours needs no search. */
export function resolve(specifier, context, nextResolve) {
  const { parentURL } = context;
  if (!specifier.startsWith('.') || !parentURL || !isOurs(parentURL)) return nextResolve(specifier, context);
  const { href } = new URL(specifier, parentURL);
  return isOurs(href) ? { url: href, format: 'module', shortCircuit: true } : nextResolve(specifier, context);
}

/** The `load` of Node's module hooks: returns the JavaScript that remains of a TypeScript module without its types. */
export function load(url, context, nextLoad) {
  if (!isOurs(url)) return nextLoad(url, context);
  return { format: 'module', source: readStripped(fileURLToPath(url)), shortCircuit: true };
}

function isOurs(url) {
  return url.startsWith('file:') && url.endsWith('.ts') && !url.includes('/node_modules/');
}

/** Reads a cached file. The file begins with a hash of the compiler, the source and the code, so an outdated or torn one is not used. */
function readStripped(filename) {
  const source = readFileSync(filename, 'utf8');
  const path = relative(ROOT, filename);
  if (path.startsWith('..')) return strip(source, filename);
  const cached = readCached(`${CACHE}${path}`);
  const code = cached.slice(HASH_LENGTH);
  if (code !== '' && cached.startsWith(hash(source, code))) return code;
  const stripped = strip(source, filename);
  if (canWrite) writeCached(`${CACHE}${path}`, hash(source, stripped) + stripped);
  return stripped;
}

function readCached(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Writes a cached file under a name of this process and renames it, because several processes may write it at the same time. */
function writeCached(file, text) {
  const own = `${file}.${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(own, text);
    renameSync(own, file);
  } catch {
    canWrite = false;
  }
}

function hash(source, code) {
  return createHash('sha256').update(`${COMPILER}\0${source}\0${code}`).digest('hex');
}

const COMPILER = require('@swc/wasm-typescript/package.json').version;

function strip(source, filename) {
  transformSync ??= require('@swc/wasm-typescript').transformSync;
  try {
    return transformSync(source, { mode: 'strip-only', filename }).code;
  } catch (error) {
    // The compiler throws a record, not an Error.
    const { startLine = 0, startColumn = 0, message = String(error), snippet = '' } = error ?? {};
    throw new SyntaxError(`${filename}:${startLine}:${startColumn + 1} ${message}\n${snippet}`, { cause: error });
  }
}
