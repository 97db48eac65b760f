// What typescript.mjs tells Node to do with a file of ours. With Node 20 it runs in the thread of the loader.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const { transformSync } = createRequire(import.meta.url)('@swc/wasm-typescript');

/** The `load` of Node's module hooks: a module of TypeScript as the JavaScript that is left without its types. */
export function load(url, context, nextLoad) {
  if (!isOurs(url)) return nextLoad(url, context);
  const filename = fileURLToPath(url);
  return { format: 'module', source: strip(readFileSync(filename, 'utf8'), filename), shortCircuit: true };
}

function isOurs(url) {
  if (!url.startsWith('file:')) return false;
  const { pathname } = new URL(url);
  return pathname.endsWith('.ts') && !pathname.includes('/node_modules/');
}

function strip(source, filename) {
  try {
    return transformSync(source, { mode: 'strip-only', filename }).code;
  } catch (error) {
    // The compiler throws a record.
    const { startLine = 0, startColumn = 0, message = String(error), snippet = '' } = error ?? {};
    throw new SyntaxError(`${filename}:${startLine}:${startColumn + 1} ${message}\n${snippet}`, { cause: error });
  }
}
