// `node --import ./process/typescript.mjs file.ts` runs the TypeScript of this repository from its source. Node 20
// cannot do this, and later versions print a warning that it is experimental. Types are replaced by blanks, so each
// statement keeps its line and column, no source map is needed, and functions are as fast as written. The compiler tsx,
// used before, names each function by a call, which costs 6 % of a balance computation in memory
// (docs/decisions/0024-source-and-tests.md).
import * as module from 'node:module';

// The compiler is loaded in the thread in which it works: this one, or that of the loader.
if (module.registerHooks) {
  const { load, resolve } = await import('./strip-types.mjs');
  module.registerHooks({ load, resolve });
} else module.register('./strip-types.mjs', import.meta.url);
