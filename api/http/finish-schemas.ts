/** Makes the schemas of the finished OpenAPI document fit for generators of clients. */
import type { createDocument } from 'zod-openapi';

export type OpenApiDocument = ReturnType<typeof createDocument>;
type Schema = { [key: string]: unknown; description?: string; default?: unknown; anyOf?: Schema[] };
type SchemaNode = Record<string, unknown>;

export function finishSchemas(document: OpenApiDocument): OpenApiDocument {
  const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>;
  const seen = new Set<unknown>();
  reduceReferences(document);
  for (const methods of Object.values(document.paths ?? {}))
    for (const { requestBody, parameters } of Object.values(methods as SchemaNode) as Operation[]) {
      moveDefaults(
        Object.values(requestBody?.content ?? {}).map(({ schema }) => schema),
        { schemas, seen },
      );
      for (const parameter of parameters ?? []) if (parameter.schema) parameter.schema = dropUnset(parameter.schema);
    }
  return document;
}

type Operation = {
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
  readonly parameters?: { schema?: Schema }[];
};

/** A named record with its own description is a reference. The library repeats its keys, as if fewer of them were required. */
function reduceReferences(node: unknown): void {
  if (typeof node !== 'object' || node === null) return;
  const { $ref, ...copied } = node as SchemaNode;
  if (typeof $ref === 'string' && typeof copied.properties === 'object')
    for (const key of Object.keys(copied)) if (key !== 'description') delete (node as SchemaNode)[key];
  for (const [key, inner] of Object.entries(node)) if (key !== 'example' && key !== 'default') reduceReferences(inner);
}

/** A parameter without a value is left out of the query string, never null or "". */
function dropUnset(schema: Schema): Schema {
  const { anyOf, ...others } = schema;
  if (!anyOf) return schema;
  const branches = anyOf.filter((branch) => branch.type !== 'null' && branch.const !== '');
  return branches.length === 1 ? { ...branches[0], ...others } : { anyOf: branches, ...others };
}

/**
 * Moves each default of a body to its description. Generators of clients take a key with the keyword `default` for one that is always
 * present, so a request without it would not compile.
 */
function moveDefaults(node: unknown, found: { schemas: Record<string, Schema>; seen: Set<unknown> }): void {
  if (typeof node !== 'object' || node === null || found.seen.has(node)) return;
  found.seen.add(node);
  const { $ref, properties } = node as SchemaNode;
  if (typeof $ref === 'string') moveDefaults(found.schemas[$ref.split('/').at(-1)!], found);
  for (const property of Object.values((properties ?? {}) as Record<string, Schema>)) moveDefault(property);
  for (const [key, inner] of Object.entries(node))
    if (key !== 'example' && key !== 'default') moveDefaults(inner, found);
}

function moveDefault(property: Schema): void {
  const { default: value, description = '' } = property;
  delete property.default;
  if (value === undefined || value === null || /\bdefault/i.test(description)) return;
  property.description = `${description} Default: ${typeof value === 'string' ? value : JSON.stringify(value)}.`.trim();
}
