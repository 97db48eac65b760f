/**
 * Stands in for the parts of Node that the verifier imports (vite.config.ts). The console calls only what needs none of them: `verify`
 * without events, and `verifyEvent` with a digest of the browser.
 */
function refuse(): never {
  throw new Error('a browser has no files and no synchronous hash');
}

export {
  refuse as createInterface,
  refuse as createReadStream,
  refuse as hash,
  refuse as pathToFileURL,
  refuse as readFileSync,
  refuse as realpathSync,
};
