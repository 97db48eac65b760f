// `node --import ./process/typescript.mjs file.ts`: from here on Node runs the TypeScript of this repository from its source.
// Node 20 cannot, and later versions tell that they do so experimentally. Types are replaced by blanks and nothing else changes:
// each statement keeps its line and column, so that no source map is needed, and a function is as quick as it was written.
// A compiler that rewrites (tsx, which we had) gives each function its name by a call, which a balance in memory pays for
// several times: 6 % of it (docs/decisions/0024-source-and-tests.md).
import * as module from 'node:module';

// The compiler is loaded where it works: in this thread, or in that of the loader.
if (module.registerHooks) {
  const { load, resolve } = await import('./strip-types.mjs');
  module.registerHooks({ load, resolve });
} else module.register('./strip-types.mjs', import.meta.url);
