// What typescript.mjs tells Node to do with a file of ours. With Node 20 it runs in the thread of the loader.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);

/** `npm ci` deletes it with the compiler that has written it. */
const CACHE = fileURLToPath(new URL('../node_modules/.cache/stripped-types/', import.meta.url));

/** The `load` of Node's module hooks: a module of TypeScript as the JavaScript that is left without its types. */
export function load(url, context, nextLoad) {
  if (!isOurs(url)) return nextLoad(url, context);
  const filename = fileURLToPath(url);
  return { format: 'module', source: stripOnce(readFileSync(filename, 'utf8'), filename), shortCircuit: true };
}

function isOurs(url) {
  if (!url.startsWith('file:')) return false;
  const { pathname } = new URL(url);
  return pathname.endsWith('.ts') && !pathname.includes('/node_modules/');
}

/**
 * A process of the service loads a thousand files. To compile them took a third of the CPU of its start, so what is compiled is kept
 * under the hash of the source, for every later process.
 */
function stripOnce(source, filename) {
  const file = join(CACHE, createHash('sha256').update(source).digest('hex'));
  try {
    return readFileSync(file, 'utf8');
  } catch {
    const stripped = strip(source, filename);
    keep(file, stripped);
    return stripped;
  }
}

/** Where the folder cannot be written, as in a read-only image, each process compiles for itself. */
function keep(file, stripped) {
  const written = `${file}.${process.pid}`;
  try {
    mkdirSync(CACHE, { recursive: true });
    writeFileSync(written, stripped);
    renameSync(written, file);
  } catch {}
}

function strip(source, filename) {
  try {
    return require('@swc/wasm-typescript').transformSync(source, { mode: 'strip-only', filename }).code;
  } catch (error) {
    // The compiler throws a record.
    const { startLine = 0, startColumn = 0, message = String(error), snippet = '' } = error ?? {};
    throw new SyntaxError(`${filename}:${startLine}:${startColumn + 1} ${message}\n${snippet}`, { cause: error });
  }
}
