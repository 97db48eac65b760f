/** Lists the JSON columns of a table: the fields of its record that are objects, lists or maps. */
import { z } from 'zod';

const known = new WeakMap<z.ZodObject, string[]>();

export function listJsonFields(record: z.ZodObject): string[] {
  const fields =
    known.get(record) ?? Object.entries(record.shape).flatMap(([field, shape]) => (isJson(shape) ? [field] : []));
  known.set(record, fields);
  return fields;
}

function isJson(shape: unknown): boolean {
  if (shape instanceof z.ZodDefault || shape instanceof z.ZodNullable || shape instanceof z.ZodOptional)
    return isJson(shape.unwrap());
  // A preprocessed field is JSON if its output is.
  if (shape instanceof z.ZodPipe) return isJson(shape.out);
  return shape instanceof z.ZodObject || shape instanceof z.ZodArray || shape instanceof z.ZodRecord;
}
