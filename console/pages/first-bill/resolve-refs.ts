import type { CatalogueRecord } from './templates.ts';

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
