/**
 * Writes a file of 300 kB to a directory for exports, in a process with a smaller file size limit, and prints the
 * result.
 */
import { createDirectoryDestination } from '../../integrations/directory/export-destination.ts';

const [root = ''] = process.argv.slice(2);
async function* bytes() {
  for (let piece = 0; piece < 30; piece++) yield Buffer.alloc(10_000, 'a');
}
const file = { key: 'a/b.csv', content_type: 'text/csv', bytes: bytes(), signal: new AbortController().signal };
const said = await createDirectoryDestination(root)
  .write({ ...file, begun: null, onBegin: () => Promise.resolve() })
  .then(async ({ commit }) => {
    await commit();
    return 'written';
  })
  .catch((error: Error) => error.message);
process.stdout.write(said);
