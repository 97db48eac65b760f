/** What the library does not say by itself of a shape in the OpenAPI document, and what it says wrongly. */
import { z } from 'zod';
import type { ZodOpenApiOverride, ZodOpenApiOverrideContext } from 'zod-openapi';

/** What has no JSON Schema (a transform, say) is described as any value, not refused. */
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
};

/** Answers have every declared key, null when unset (encode.ts): what a shape calls optional is nullable on the wire. */
function declareEveryKey({ jsonSchema, io }: ZodOpenApiOverrideContext): void {
  if (io !== 'output' || !jsonSchema.properties) return;
  const required = new Set(jsonSchema.required);
  for (const [key, property] of Object.entries(jsonSchema.properties)) {
    if (!required.has(key)) jsonSchema.properties[key] = { anyOf: [property, { type: 'null' }] } as typeof property;
  }
  jsonSchema.required = Object.keys(jsonSchema.properties);
}

/**
 * Of a number that goes through several shapes (from its text, then within its bounds) a request is described with the first, and
 * must keep what the last says. That a whole number is not beyond what a double holds exactly is no bound that anybody has set.
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

/** The library leaves out the default of what is transformed, for it may be none that could be sent: one that is taken as it is can be. */
function sayDefault({ zodSchema, jsonSchema, io }: ZodOpenApiOverrideContext): void {
  if (io !== 'input' || jsonSchema.default !== undefined || !(zodSchema instanceof z.ZodDefault)) return;
  const { defaultValue } = zodSchema.def;
  if (!['string', 'number', 'boolean'].includes(typeof defaultValue)) return;
  const taken = zodSchema.safeParse(defaultValue);
  if (taken.success && taken.data === defaultValue) jsonSchema.default = defaultValue as string | number | boolean;
}
