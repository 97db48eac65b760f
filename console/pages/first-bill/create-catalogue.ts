/** Creates the records of a catalogue in an order in which each one finds those that it names. */
import { api, readData } from '../../client/client.ts';
import { resolveRefs } from './resolve-refs.ts';
import type { CatalogueDraft } from './templates.ts';

const KINDS = [
  ['plans', '/plans'],
  ['meters', '/meters'],
  ['features', '/features'],
  ['prices', '/prices'],
  ['entitlements', '/entitlements'],
] as const;

export async function createCatalogue(draft: CatalogueDraft): Promise<void> {
  const ids = new Map<string, string>();
  for (const [kind, path] of KINDS)
    for (const { ref, body } of draft[kind]) {
      const { id } = await readData(api.POST(path, { body: resolveRefs(body, ids) as never }));
      ids.set(ref, id);
    }
}
