/** Creates the records of a catalogue in an order in which each one finds those that it names. */
import { api, dataFrom } from '../../client/client.ts';
import type { CatalogueDraft, CatalogueRecord } from './templates.ts';

const REFERENCES = ['entity_id', 'meter_id', 'feature_id'] as const;

/** The body with the ids of the records that it names by their `ref`. */
export function resolveRefs(body: CatalogueRecord['body'], ids: ReadonlyMap<string, string>): Record<string, unknown> {
  const resolved: Record<string, unknown> = { ...body };
  for (const key of REFERENCES) {
    const ref = body[key];
    if (typeof ref === 'string') resolved[key] = ids.get(ref) ?? ref;
  }
  return resolved;
}

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
      const { id } = await dataFrom(api.POST(path, { body: resolveRefs(body, ids) as never }));
      ids.set(ref, id);
    }
}
