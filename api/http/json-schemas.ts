/** Completes and corrects the JSON Schemas that the library generates for the OpenAPI document. */
import { z } from 'zod';
import type { ZodOpenApiOverride, ZodOpenApiOverrideContext } from 'zod-openapi';

/** Types without a JSON Schema (a transform, for example), which are described as any value instead of being refused. */
export const ANY = Object.fromEntries(
  ['any', 'unknown', 'custom', 'transform', 'date', 'bigint', 'undefined'].map((type) => [
    type,
    { input: true, output: true },
  ]),
);

export const describeShape: ZodOpenApiOverride = (context) => {
  declareEveryKey(context);
  sayBounds(context);
  sayDefault(context);
  admitUnset(context);
};

/**
 * Answers have every declared key, null when unset (core/foundation/json/complete-keys.ts). So an optional key of a shape is described as
 * required and nullable.
 */
function declareEveryKey({ jsonSchema, io }: ZodOpenApiOverrideContext): void {
  if (io !== 'output' || !jsonSchema.properties) return;
  const required = new Set(jsonSchema.required);
  for (const [key, property] of Object.entries(jsonSchema.properties)) {
    if (!required.has(key)) jsonSchema.properties[key] = { anyOf: [property, { type: 'null' }] } as typeof property;
  }
  jsonSchema.required = Object.keys(jsonSchema.properties);
}

/**
 * A number that passes through several shapes (parsed from text, then bounded) is described by the first shape; this adds the bounds of the
 * last. The safe-integer limits of a whole number are not bounds of the API, so they are removed.
 */
function sayBounds({ zodSchema, jsonSchema, io }: ZodOpenApiOverrideContext): void {
  if (jsonSchema.type !== 'integer' && jsonSchema.type !== 'number') return;
  if (io === 'input' && zodSchema instanceof z.ZodPipe && zodSchema.out instanceof z.ZodNumber) {
    const { minValue, maxValue } = zodSchema.out;
    if (isBound(minValue)) jsonSchema.minimum = Math.max(minValue, jsonSchema.minimum ?? minValue);
    if (isBound(maxValue)) jsonSchema.maximum = Math.min(maxValue, jsonSchema.maximum ?? maxValue);
  }
  if (!isBound(jsonSchema.minimum)) delete jsonSchema.minimum;
  if (!isBound(jsonSchema.maximum)) delete jsonSchema.maximum;
}

const isBound = (value: number | null | undefined): value is number =>
  typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER;

/**
 * The library omits the default of a transformed value, because that default may not be valid input. This adds a default that parses to
 * itself.
 */
function sayDefault({ zodSchema, jsonSchema, io }: ZodOpenApiOverrideContext): void {
  if (io !== 'input' || jsonSchema.default !== undefined || !(zodSchema instanceof z.ZodDefault)) return;
  const { defaultValue } = zodSchema.def;
  if (!['string', 'number', 'boolean'].includes(typeof defaultValue)) return;
  const taken = zodSchema.safeParse(defaultValue);
  if (taken.success && taken.data === defaultValue) jsonSchema.default = defaultValue as string | number | boolean;
}

/** Adds null and "" to the schema of a request's value if the service takes them for an unset one. */
function admitUnset({ zodSchema, jsonSchema, io }: ZodOpenApiOverrideContext): void {
  if (io !== 'input') return;
  const unset: JsonSchema[] = [];
  if (!canBe(jsonSchema, 'null') && accepts(zodSchema, null)) unset.push({ type: 'null' });
  if (!canBe(jsonSchema, 'string') && accepts(zodSchema, '')) unset.push({ const: '' });
  if (unset.length === 0) return;
  const { description, default: value, ...terms } = jsonSchema;
  const isUnion = jsonSchema.anyOf !== undefined && Object.keys(terms).length === 1;
  const anyOf = [...(isUnion ? jsonSchema.anyOf! : [terms]), ...unset];
  for (const key of Object.keys(terms)) delete jsonSchema[key as keyof typeof jsonSchema];
  Object.assign(jsonSchema, { anyOf });
}

type JsonSchema = ZodOpenApiOverrideContext['jsonSchema'];

function accepts(zodSchema: ZodOpenApiOverrideContext['zodSchema'], value: null | ''): boolean {
  return z.safeParse(zodSchema, value).success;
}

/** Whether the schema admits null, or any text. A reference is to a record, which is neither. */
function canBe(schema: JsonSchema, type: 'null' | 'string'): boolean {
  if (schema.$ref) return false;
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches) return branches.some((branch) => canBe(branch as JsonSchema, type));
  if (type === 'string' && schema.const === '') return true;
  if (type === 'string' && RESTRICTIONS.some((key) => key in schema)) return false;
  return schema.type === undefined ? !('const' in schema) && !schema.allOf : [schema.type].flat().includes(type);
}

const RESTRICTIONS = ['enum', 'const', 'format', 'pattern', 'minLength'] as const;
